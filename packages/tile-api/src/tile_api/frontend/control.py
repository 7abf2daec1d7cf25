"""What control flow means: branches, loops, `with`, `return`, `assert`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tile_api.frontend.activation import ActivationBase, OutOfScopeName
from tile_api.frontend.assignments import is_pure
from tile_api.frontend.builder import BlockKind, Builder, Frame
from tile_api.frontend.loopspec import LoopSpec, as_loop
from tile_api.frontend.values import BufferValue, VarHandle
from tile_core.errors import (
    ControlFlowError,
    FrontendTypeError,
    OutputError,
    ReturnInControlFlow,
    Span,
    TraceAssertionError,
)
from tile_core.ir import build_expr
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Call, Const, Expr
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import walk
from tile_core.ir.stmt import Break, Check, CheckKind, Continue, Evaluate, If, Seq, While


def condition(builder: Builder, value: Any, where: str) -> bool | Expr:
    """Return a condition as a Python bool if it is known now, else as a bool expression."""
    if isinstance(value, OutOfScopeName):
        value.refuse()
    if isinstance(value, (BufferValue, Region)):
        name = value.buffer.name
        raise FrontendTypeError(
            f"the buffer {name!r} is used as the condition of {where}",
            hint=f"compare an element, as in `{name}[0] != 0`, or test `{name} is not None`",
        )
    if isinstance(value, (Expr, VarHandle)):
        expr = build_expr.truth(value)
        if expr.dtype.lanes > 1:
            raise FrontendTypeError(
                f"a vector of {expr.dtype.lanes} values is used as the condition of {where}",
                hint="test one element, or choose in each lane: T.if_then_else(cond, a, b)",
            )
        return bool(expr.value) if isinstance(expr, Const) else expr
    plain = value is None or isinstance(value, (bool, int, float)) or is_number(value)
    if not plain:
        builder.warn(
            f"the condition of {where} is a Python {type(value).__name__}; its truth value is "
            "taken once, while the kernel is traced"
        )
    return bool(value)


def while_condition(builder: Builder, cond: bool | Expr) -> bool | Expr:
    """Return the condition of a loop if it can end; warn if its body never runs."""
    if cond is False:
        builder.warn("the condition of this `while` is always false: its body is dropped")
    if cond is True:
        raise ControlFlowError(
            "the condition of this `while` is always true, so the loop would never end",
            hint="test a run-time value, such as an alloc_var that the body changes",
        )
    return cond


def close_while(builder: Builder, cond: bool | Expr, span: Span | None) -> None:
    """End the body of a `while` loop and emit the loop, unless its condition is false."""
    body = builder.close()
    if isinstance(cond, bool):
        return
    leaves = any(isinstance(node, Break) for node in walk(body))
    builder.emit(While(cond, body, span=span))
    if is_pure(cond) and not leaves:
        builder.warn(
            "nothing in this `while` loop can change its condition, which reads no buffer or "
            "alloc_var: once entered, it never ends"
        )


def is_number(value: Any) -> bool:
    """Whether `value` is a number of another library, such as a NumPy scalar."""
    return getattr(value, "shape", None) == () and hasattr(value, "item")


def has_effect(expr: Expr) -> bool:
    """Whether evaluating `expr` does more than give a value."""
    calls = (node for node in walk(expr) if isinstance(node, Call))
    return any(effect_of(call.function) is not Effect.NONE for call in calls)


class Control(ActivationBase):
    """Statements that decide what runs."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.branches: list[bool] = []

    def branch(self, value: Any) -> Iterator[bool]:
        """Yield True to trace the `if` side, then False for `else`; one of them if known."""
        builder = self.builder
        cond = condition(builder, value, "`if`")
        if isinstance(cond, bool):
            self.branches.append(False)
            yield cond
            self.branches.pop()
            self.left_names = {}
            return
        span = builder.span
        self.branches.append(True)
        sides: list[Seq] = []
        bound = {}
        for side in (True, False):
            builder.open(BlockKind.BRANCH)
            self.push_scope("if")
            yield side
            self.pop_scope()
            bound.update(self.left_names)
            sides.append(builder.close())
        self.branches.pop()
        then, otherwise = sides
        builder.emit(If(cond, then, otherwise if otherwise.body else None, span=span))
        self.left_names, self.left_label = bound, "if"

    def rejoin(
        self, names: tuple[str, ...], before: tuple[Any, ...], after: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return what `names` hold at the start of the next branch."""
        if not self.branches[-1]:
            return after
        bound = self.scopes[-1].bound
        return tuple(
            old if name in bound else new
            for name, old, new in zip(names, before, after, strict=True)
        )

    def loop(self, iterable: Any, names: tuple[str, ...]) -> Iterator[Any]:
        """Trace the body of a `for` loop once, yielding its index or indices."""
        spec = as_loop(iterable)
        self.push_scope("for")
        for value in spec.trace(self.builder, names):
            self.named(*names)
            yield value
        self.pop_scope()

    def while_(self, thunk: Callable[[], Any]) -> Iterator[None]:
        """Trace the body of a `while` loop once."""
        builder = self.builder
        with builder.operand("`while`", conditional=True):
            cond = condition(builder, thunk(), "`while`")
        self.left_names = {}
        if while_condition(builder, cond) is False:
            return
        span = builder.span
        builder.open(BlockKind.WHILE)
        self.push_scope("while")
        yield None
        self.pop_scope()
        left = self.left_names
        close_while(builder, cond, span)
        self.left_names = left

    def break_(self) -> None:
        """Perform `break`."""
        emit_jump(self.builder, "break")

    def continue_(self) -> None:
        """Perform `continue`."""
        emit_jump(self.builder, "continue")

    @contextmanager
    def with_(self, manager: Any, names: tuple[str, ...]) -> Iterator[Any]:
        """Run a `with` block; frames of the language end the names bound inside."""
        if not isinstance(manager, Frame):
            self._check_manager(manager)
            self.left_names = {}
            with manager as value:
                self.named(*names)
                yield value
            self.left_names = {}
            return
        value = manager.enter(self.builder, names)
        self.push_scope("with")
        self.named(*names)
        yield value
        manager.exit(self.builder)
        self.pop_scope()

    def _check_manager(self, manager: Any) -> None:
        """Refuse what no `with` can enter: a function that was not called, say."""
        if hasattr(type(manager), "__enter__"):
            return
        name = getattr(manager, "__name__", None) if callable(manager) else None
        told = f"the function {name}" if name else f"an object of type {type(manager).__name__}"
        hint = "call it, as in `with T.ws(0):`" if name else "use T.Kernel(...) or T.ws(...)"
        raise FrontendTypeError(f"`with` cannot enter {told}", hint=hint)

    def assert_(self, value: Any, message: Callable[[], Any]) -> None:
        """Check a condition: now if it is known, else when the kernel runs."""
        cond = condition(self.builder, value, "`assert`")
        if cond is True:
            return
        told = message()
        text = "" if told is None else str(told)
        if cond is False:
            raise TraceAssertionError(
                text or "the asserted condition is false",
                hint="the values are known while the kernel is traced: change the arguments that "
                "lead here",
            )
        self.builder.emit(Check(cond, text, CheckKind.ASSERT))

    def expr(self, value: Any) -> None:
        """Perform an expression statement: effects are kept, plain values dropped."""
        if isinstance(value, OutOfScopeName):
            value.refuse()
        if isinstance(value, Frame):
            self.builder.enter_until_end(value)
        elif isinstance(value, Expr):
            if has_effect(value):
                self.builder.emit(Evaluate(value))
        elif isinstance(value, LoopSpec):
            self.builder.warn("this loop has no body: write `for i in ...:`")

    def ret(self, value: Any) -> Any:
        """Return from a traced function, or refuse to."""
        builder = self.builder
        blocks = builder.blocks[self.base_depth :]
        inside = next((b.kind.value for b in blocks if b.kind.is_dynamic), None)
        if inside is not None:
            raise ReturnInControlFlow(
                f"`return` inside a run-time {inside!r} block is not supported",
                hint="guard the statements that follow with `if`"
                if self.kind == "prim_func"
                else "store the result in an alloc_var and return it at the end",
            )
        if self.kind != "prim_func":
            return self.returned(value)
        if value is not None:
            builder.returned = _outputs(builder, value)
        return None

    def returned(self, value: Any) -> Any:
        """Return the value of a macro: variables are read here."""
        if isinstance(value, VarHandle):
            return value.__tile_expr__() if value.claimed else value
        if isinstance(value, tuple):
            return tuple(self.returned(v) for v in value)
        return value


def _outputs(builder: Builder, value: Any) -> tuple[Any, ...]:
    values = value if isinstance(value, (tuple, list)) else (value,)
    for v in values:
        if not isinstance(v, BufferValue) or not any(v.buffer is b for b in builder.outputs):
            raise OutputError(
                "a kernel can only return tensors that it declared with T.empty",
                hint="write C = T.empty((M, N), dtype) before the kernel, fill it, and return it",
            )
    buffers = tuple(v.buffer for v in values)
    if len(set(buffers)) != len(buffers):
        told = "a kernel returns each tensor once"
        raise OutputError(told, hint="return it once and use the result twice")
    return buffers


def emit_jump(builder: Builder, keyword: str) -> None:
    """Emit `break` or `continue` for the innermost loop."""
    for block in reversed(builder.blocks):
        if block.kind in (BlockKind.SERIAL, BlockKind.WHILE):
            builder.emit(Break() if keyword == "break" else Continue())
            builder.end_block(keyword)
            return
        if block.kind.is_loop:
            raise ControlFlowError(
                f"`{keyword}` is not possible in a {block.kind.value} loop",
                hint="guard the statements with `if`, or use T.serial or `while`",
            )
    hint = "use it in the body of T.serial, T.unroll or `while`"
    raise ControlFlowError(f"`{keyword}` stands outside a loop", hint=hint)
