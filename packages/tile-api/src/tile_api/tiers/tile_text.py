"""Kernels of tiles, of any origin, as programs in the language."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator

from tile_api.tiers.line_breaks import broken
from tile_api.tiers.rank_text import RankText
from tile_api.tiers.tile_operators import annotation, operator
from tile_core.ir import stmt as s
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Call, Const, Expr, Extent, Var
from tile_core.ir.names import Names
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.printer import symbols_of
from tile_core.ops.async_copy import CopyCommit
from tile_core.ops.copy import Copy
from tile_core.ops.reducer import ReducerInit

RESERVED = frozenset({*keyword.kwlist, "T"})
_LOOPS = {
    s.LoopKind.SERIAL: "serial",
    s.LoopKind.UNROLL: "unroll",
    s.LoopKind.VECTORIZED: "vectorized",
}


def kernel_lines(kernel: s.Kernel, reserved: frozenset[str] = RESERVED) -> Iterator[str]:
    """Yield the lines of a ``@T.prim_func`` that means the kernel, behind those of its symbols.

    Parameters
    ----------
    reserved
        Names that the program around it keeps.

    Raises
    ------
    UnsupportedForm
        If part of it cannot be written so.
    """
    yield from _KernelText(kernel, reserved).lines()


class _KernelText:
    def __init__(self, kernel: s.Kernel, reserved: frozenset[str]) -> None:
        self.kernel = kernel
        self.names = Names(reserved)
        self.w = RankText(self.names.of, kernel)
        self.out: list[str] = []
        self.kinds = {op.reducer: op.kind.value for op in nodes_of(kernel.body, ReducerInit)}

    def lines(self) -> Iterator[str]:
        kernel, w = self.kernel, self.w
        symbols = [
            f'{self.names.of(v)} = T.dynamic("{v.name}", "{v.dtype}"{_promised(v)})'
            for v in symbols_of(kernel)
            if not w.is_hidden(v)
        ]
        given = [p for p in kernel.params if isinstance(p, Buffer) or not w.is_hidden(p)]
        params = [self._parameter(param) for param in given]
        kept = all(self.names.of(p) == p.name for p in given)
        if not kept or not kernel.name.isidentifier() or kernel.name in RESERVED:
            raise w.no_form("a name that Python, or the program around it, keeps")
        if kernel.sources:
            raise w.no_form("C text that a kernel brings along")
        for key, values in (
            ("pass_configs", dict(kernel.options.pass_configs)),
            ("compile_flags", list(kernel.options.compile_flags)),
        ):
            if values:
                self.line(1, f"T.annotate_{key}({values!r})")
        self.block(s.Seq(w.body()), 1)
        if symbols:
            yield from (*symbols, "", "")
        yield "@T.prim_func"
        yield from broken(f"def {kernel.name}({', '.join(params)}):", 0)
        yield from self.out

    def _parameter(self, param: Buffer | Var) -> str:
        name = self.names.of(param)
        if isinstance(param, Var):
            if param.contract is not None:
                raise self.w.no_form(f"the contract of the parameter {param.name!r}")
            return f"{name}: T.{'ptr' if param.dtype.is_handle else param.dtype}"
        if param in self.w.copies:
            return f"{name}: {self.w.parameter(param)}"
        shape = self.w.shape(param.shape)
        if param.strides is None:
            return f'{name}: T.Tensor({shape}, "{param.dtype}")'
        strides = self.w.shape(param.strides)
        return f'{name}: T.StridedTensor({shape}, {strides}, "{param.dtype}")'

    def line(self, depth: int, text: str) -> None:
        self.out += broken(text, depth)

    # Statements ----------------------------------------------------------------------------

    def block(self, body: s.Stmt, depth: int) -> None:
        start = len(self.out)
        statements = s.flattened(body)
        for before, stmt in zip([None, *statements], statements, strict=False):
            is_group = isinstance(before, Copy) and before.is_async
            if is_group and isinstance(stmt, CopyCommit):
                continue  # T.async_copy is a group of its own
            for part in _own(stmt):
                self._views(part, depth)
            self.statement(stmt, depth)
        if len(self.out) == start:
            self.line(depth, "pass")

    def statement(self, stmt: s.Stmt, depth: int) -> None:
        head = self._head(stmt)
        if head is None:
            self.line(depth, self._simple(stmt))
            return
        self.line(depth, f"{head}:")
        if isinstance(stmt, s.If):
            self.block(stmt.then, depth + 1)
            if stmt.otherwise is not None:
                self.line(depth, "else:")
                self.block(stmt.otherwise, depth + 1)
            return
        if isinstance(stmt, s.Launch):
            used = {*nodes_of(stmt.body, Var)}
            for axis, var in enumerate(stmt.thread_vars):
                if var in used:
                    self.line(depth + 1, f"{self.names.of(var)} = T.get_thread_binding({axis})")
        for body in stmt.children():
            if s.is_statement(body):
                self.block(body, depth + 1)

    def _head(self, stmt: s.Stmt) -> str | None:
        """Return what introduces the body of a statement; None for those without one."""
        names = self.names

        def e(*extents: Extent) -> str:
            return ", ".join(map(self.w.written, extents))

        match stmt:
            case s.Launch(grid=grid, threads=threads):
                blocks = ", ".join(names.of(var) for var in stmt.block_vars)
                count = threads[0] if threads[1:] == (1, 1) else threads
                blocks = f"({blocks})" if len(grid) > 1 else blocks
                cluster = f", cluster_dims={stmt.cluster!r}" if stmt.cluster else ""
                return f"with T.Kernel({e(*grid)}, threads={count}{cluster}) as {blocks}"
            case s.For(var=var, start=a, stop=b, step=c, kind=kind):
                bounds = [e(a), e(b), e(c)]
                bounds = bounds[:2] if bounds[2] == "1" else bounds
                bounds = bounds[1:] if bounds[0] == "0" and len(bounds) == 2 else bounds
                return f"for {names.of(var)} in T.{_LOOPS[kind]}({', '.join(bounds)})"
            case s.Pipelined(var=var, start=a, stop=b, num_stages=n, order=order, stage=stage):
                words = f", order={list(order)!r}" if order else ""
                words += f", stage={list(stage)!r}" if stage else ""
                span = e(b) if e(a) == "0" else e(a, b)
                return f"for {names.of(var)} in T.Pipelined({span}, num_stages={n}{words})"
            case s.Parallel(vars=variables, extents=extents, loop_layout=None, is_async=False):
                width = stmt.coalesced_width
                words = "" if width is None else f", coalesced_width={width}"
                return (
                    f"for {', '.join(map(names.of, variables))} in T.Parallel({e(*extents)}{words})"
                )
            case s.While(cond=cond):
                return f"while {e(cond)}"
            case s.If(cond=cond):
                return f"if {e(cond)}"
        return None

    def _simple(self, stmt: s.Stmt) -> str:
        w = self.w
        match stmt:
            case s.Let(var=var, value=value):
                return self._let(var, value)
            case s.Alloc(buffer=buffer):
                return self._alloc(buffer)
            case s.Store(buffer=buffer, indices=indices, value=value):
                place = ast.unparse(w.element(buffer, indices))
                return f"{place} = {w.written(value)}"
            case s.Evaluate(value=value):
                update = w.atomic(value, is_read=False)
                return w.written(value) if update is None else ast.unparse(update)
            case s.Break():
                return "break"
            case s.Continue():
                return "continue"
            case s.Check(cond=cond, message=message, kind=kind):
                if kind is s.CheckKind.ASSUME:
                    return f"T.assume({w.written(cond)})"
                return f"T.device_assert({w.written(cond)}, {message!r})"
            case s.AnnotateLayout() | s.AnnotateSafeValue() | s.Hint():
                return annotation(stmt, w)
            case s.Leaf():
                return operator(stmt, w)
        raise w.no_form(f"a statement of kind {type(stmt).__name__}")

    def _let(self, var: Var, value: Expr) -> str:
        w = self.w
        if isinstance(value, Const) or value.dtype != var.dtype:
            raise w.no_form(f"the name {var.name!r} of a number")
        update = w.atomic(value, is_read=True) if isinstance(value, Call) else None
        text = w.written(value) if update is None else ast.unparse(update)
        return f"{self.names.of(var)} = {text}"

    def _alloc(self, buffer: Buffer) -> str:
        name, shape = self.names.of(buffer), self.w.shape(buffer.shape)
        if buffer.origin is not None or buffer.strides is not None:
            raise self.w.no_form(f"the buffer {buffer.name!r}")
        match buffer.scope:
            case Scope.SHARED | Scope.FRAGMENT | Scope.LOCAL:
                where = buffer.scope.value.removeprefix("local.")
                return f'{name} = T.alloc_{where}({shape}, "{buffer.dtype}")'
            case Scope.VAR:
                return f'{name} = T.alloc_var("{buffer.dtype}")'
            case Scope.GLOBAL:
                return f'{name} = T.alloc_global({shape}, "{buffer.dtype}")'
            case Scope.ACCUMULATOR:
                return f'{name} = T.alloc_tmem({shape}, "{buffer.dtype}")'
            case Scope.REDUCER if buffer in self.kinds:
                kind = self.kinds[buffer]
                return f'{name} = T.alloc_reducer({shape}, "{buffer.dtype}", {kind!r})'
        raise self.w.no_form(f"the buffer {buffer.name!r}")

    def _views(self, part: Node, depth: int) -> None:
        """Declare views, and tensors at addresses, where they are first seen."""
        for buffer in dict.fromkeys(nodes_of(part, Buffer)):
            if buffer.origin is None or buffer in self.names:
                continue
            self._views(buffer.origin, depth)
            shape = f'{self.w.shape(buffer.shape)}, "{buffer.dtype}"'
            if isinstance(buffer.origin, Buffer):
                text = f"T.view({self.names.of(buffer.origin)}, {shape})"
            else:
                text = f"T.make_tensor({self.w.written(buffer.origin)}, {shape})"
            self.line(depth, f"{self.names.of(buffer)} = {text}")


def _own(stmt: s.Stmt) -> list[Node]:
    """Return what a statement itself speaks of, without its body."""
    return [child for child in stmt.children() if not s.is_statement(child)]


def _promised(var: Var) -> str:
    known = var.contract
    if known is None:
        return ""
    words = [f", min={known.low}"] if known.low else []
    words += [] if known.high is None else [f", max={known.high}"]
    words += [f", multiple_of={known.multiple_of}"] if known.multiple_of > 1 else []
    return "".join(words)
