"""Statements as frames, in the form in which TVM builds programs: `T.If`, `T.While`, `T.sblock`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_api.frontend.builder import BlockKind, Builder, Frame, current
from tile_api.frontend.control import close_while, condition, while_condition
from tile_api.frontend.values import BufferValue, VarHandle, as_value
from tile_core.errors import ControlFlowError, FrontendTypeError, FrontendValueError, Span
from tile_core.ir import build_expr
from tile_core.ir.buffer import Region
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.stmt import If as IfStmt
from tile_core.ir.stmt import Seq

__all__ = [
    "Else", "If", "Then", "While", "axis", "block", "init", "reads", "sblock", "where", "writes",
]  # fmt: skip


class If(Frame):
    """A branch: ``with T.If(condition):`` around ``with T.Then():`` and ``with T.Else():``.

    The same as the statement `if`. ``with T.If(condition), T.Then():`` is for one side alone.

    Parameters
    ----------
    condition
        A truth value, known now or when the kernel runs.

    Raises
    ------
    ControlFlowError
        At its end: if it has no `T.Then`, or statements outside of both sides.
    """

    def __init__(self, condition: Any) -> None:
        self.value = condition
        self.sides: dict[str, Seq] = {}
        self.span: Span | None = None
        self.test: bool | Expr = False

    def enter(self, builder: Builder, names: tuple[str, ...]) -> None:
        """Take the condition."""
        self.span = builder.span
        self.test = condition(builder, self.value, "T.If")
        builder.open(BlockKind.BRANCH).form = self

    def exit(self, builder: Builder) -> None:
        """Emit the branch; of a condition known now, the side that is taken."""
        stray = builder.close().body
        if stray:
            raise ControlFlowError(
                "a statement in T.If stands outside of T.Then and T.Else",
                span=stray[0].span,
                hint="write `with T.Then():` around it, or use the statement `if`",
            )
        if "T.Then" not in self.sides:
            hint = "write `with T.If(condition), T.Then():`, or use the statement `if`"
            raise ControlFlowError("T.If has no T.Then", span=self.span, hint=hint)
        then, otherwise = self.sides["T.Then"], self.sides.get("T.Else")
        if isinstance(self.test, Expr):
            builder.emit(IfStmt(self.test, then, otherwise, span=self.span))
            return
        for stmt in (then if self.test else otherwise or Seq(())).body:
            builder.emit(stmt)


class _Side(Frame):
    def __init__(self, name: str) -> None:
        self.name = name

    def enter(self, builder: Builder, names: tuple[str, ...]) -> None:
        """Begin this side of the innermost `T.If`."""
        branch = builder.blocks[-1].form
        if not isinstance(branch, If):
            raise ControlFlowError(
                f"{self.name} does not stand directly in a T.If",
                hint="write `with T.If(condition):` around it",
            )
        if self.name in branch.sides:
            raise ControlFlowError(
                f"this T.If has a {self.name} already",
                hint="write all statements of one side in one block",
            )
        self.branch = branch
        builder.open(BlockKind.BRANCH)

    def exit(self, builder: Builder) -> None:
        """Hand the statements to the `T.If`."""
        self.branch.sides[self.name] = builder.close()


def Then() -> Frame:
    """Return what ``with`` enters for the statements that run if the condition of `T.If` holds."""
    return _Side("T.Then")


def Else() -> Frame:
    """Return what ``with`` enters for the statements that run if it does not."""
    return _Side("T.Else")


class While(Frame):
    """A loop: ``with T.While(condition):``, the same as the statement `while`.

    Parameters
    ----------
    condition
        A run-time truth value, tested before each iteration; it reads a buffer or an `alloc_var`
        that the body changes.

    Raises
    ------
    ControlFlowError
        If the condition is always true.
    """

    def __init__(self, condition: Any) -> None:
        self.value = condition
        self.test: bool | Expr = False
        self.span: Span | None = None

    def enter(self, builder: Builder, names: tuple[str, ...]) -> None:
        """Take the condition."""
        self.span = builder.span
        self.test = while_condition(builder, condition(builder, self.value, "T.While"))
        builder.open(BlockKind.WHILE)

    def exit(self, builder: Builder) -> None:
        """Emit the loop."""
        close_while(builder, self.test, self.span)


class BlockFrame(Frame):
    """What `T.sblock` returns; `starts` says of each reduction axis whether it begins here."""

    def __init__(self) -> None:
        self.starts: list[Expr] = []

    def enter(self, builder: Builder, names: tuple[str, ...]) -> None:
        """Begin the block."""
        builder.open(BlockKind.REGION).form = self

    def exit(self, builder: Builder) -> None:
        """End it."""
        for stmt in builder.close().body:
            builder.emit(stmt)


def sblock(name: str = "", no_realize: bool = False) -> BlockFrame:
    """Return a block of statements: ``with T.sblock("name"):``, as TVM's schedules name them.

    Its statements are those of the program around it. `T.axis` binds its iterators, `T.where`
    guards what follows in it, ``with T.init():`` runs where all reduction axes begin; `T.reads`
    and `T.writes` may say what it touches, which the compiler finds by itself.
    """
    return BlockFrame()


block = sblock


def _enclosing(what: str) -> BlockFrame:
    """Return the `T.sblock` around."""
    builder = current()
    for around in reversed(builder.blocks):
        if isinstance(around.form, BlockFrame):
            return around.form
    hint = 'write `with T.sblock("name"):` around it, or leave it out'
    raise ControlFlowError(f"{what} stands outside of a T.sblock", hint=hint)


def reads(*regions: Any) -> None:
    """State what a `T.sblock` reads: buffers, regions, elements. Nothing depends on it.

    Raises
    ------
    ControlFlowError
        Outside of a `T.sblock`.
    FrontendTypeError
        For anything else.
    """
    _stated("T.reads", regions)


def writes(*regions: Any) -> None:
    """State what a `T.sblock` writes; see `reads`."""
    _stated("T.writes", regions)


def _stated(what: str, regions: tuple[Any, ...]) -> None:
    _enclosing(what)
    for group in regions:
        for region in group if isinstance(group, (list, tuple)) else (group,):
            if not isinstance(region, (BufferValue, Region, VarHandle, Load)):
                told = f"{what} names a buffer, a region or an element"
                raise FrontendTypeError(told, hint=f"write {what}(A[0:16, k])")


class _Guarded(Frame):
    """Statements to the end of a block, if a condition holds."""

    def __init__(self, test: bool | Expr) -> None:
        self.test = test
        self.span: Span | None = None

    def enter(self, builder: Builder, names: tuple[str, ...]) -> None:
        self.span = builder.span
        builder.open(BlockKind.BRANCH)

    def exit(self, builder: Builder) -> None:
        body = builder.close()
        if isinstance(self.test, Expr):
            builder.emit(IfStmt(self.test, body, span=self.span))
        elif self.test:
            for stmt in body.body:
                builder.emit(stmt)


def where(predicate: Any) -> None:
    """Run what follows in this `T.sblock` only if `predicate` holds."""
    _enclosing("T.where")
    builder = current()
    builder.enter_until_end(_Guarded(condition(builder, predicate, "T.where")))


def init() -> Frame:
    """Return what ``with`` enters for statements that run where all reduction axes begin.

    Raises
    ------
    ControlFlowError
        Outside of a `T.sblock`.
    """
    begins = build_expr.all_of(_enclosing("T.init").starts)
    return _Guarded(True if begins is None else begins)


class _Axes:
    """`T.axis`: iterators of a `T.sblock`, bound to values of the loops around it.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.serial(4):
    ...             with T.sblock("twice"):
    ...                 at = T.axis.spatial(4, i)
    ...                 B[at] = A[at] * 2
    >>> tile.compile(twice, out_idx=[-1], target="cpu")(np.ones(4, "float32"))
    array([2., 2., 2., 2.], dtype=float32)
    """

    def spatial(self, dom: Any, binding: Any, dtype: Any = "int32") -> Expr:
        """Return `binding`, an iterator over the extent or range `dom`."""
        return self._bound("T.axis.spatial", dom, binding)

    def reduce(self, dom: Any, binding: Any, dtype: Any = "int32") -> Expr:
        """Return `binding`, along which results are combined: where it begins is `T.init`."""
        value = self._bound("T.axis.reduce", dom, binding)
        start = dom[0] if isinstance(dom, (list, tuple)) else 0
        self._begins(value, as_value(start, value.dtype))
        return value

    def scan(self, dom: Any, binding: Any, dtype: Any = "int32") -> Expr:
        """Return `binding`."""
        return self._bound("T.axis.scan", dom, binding)

    def opaque(self, dom: Any, binding: Any, dtype: Any = "int32") -> Expr:
        """Return `binding`."""
        return self._bound("T.axis.opaque", dom, binding)

    def remap(self, kinds: str, bindings: Sequence[Any], dtype: Any = "int32") -> Any:
        """Return loop indices as iterators; `kinds` has an S (spatial) or R (reduce) for each.

        Raises
        ------
        FrontendValueError
            If `kinds` is not as long as `bindings`, or has other letters.
        FrontendTypeError
            If a binding is no index of a loop.
        """
        if len(kinds) != len(bindings) or set(kinds) - set("SR"):
            raise FrontendValueError(
                f"T.axis.remap has the kinds {kinds!r} for {len(bindings)} loop indices",
                hint='write an S or an R for each, as in T.axis.remap("SR", [i, k])',
            )
        values = [self._bound("T.axis.remap", None, b) for b in bindings]
        for kind, value in zip(kinds, values, strict=True):
            bounds = current().ranges.get(value) if isinstance(value, Var) else None
            if bounds is None:
                raise FrontendTypeError(
                    "T.axis.remap needs the indices of the loops around",
                    hint="use T.axis.spatial(extent, value) for other values",
                )
            if kind == "R":
                self._begins(value, as_value(bounds.low or 0, value.dtype))
        return values[0] if len(values) == 1 else tuple(values)

    S, R = spatial, reduce

    def _bound(self, what: str, dom: Any, binding: Any) -> Expr:
        _enclosing(what)
        return as_value(binding)

    def _begins(self, value: Expr, start: Expr) -> None:
        _enclosing("T.axis").starts.append(build_expr.binary(BinaryOp.EQ, value, start))


axis = _Axes()
