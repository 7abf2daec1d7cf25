"""Barriers and printing as programs of one thread."""

from __future__ import annotations

from typing import Any

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.arith import as_expr, binary, call
from tile_core.ir.device_calls import device
from tile_core.ir.expr import BinaryOp, Expr, StringConst, Var
from tile_core.ir.stmt import Evaluate, For, If, Seq, Stmt
from tile_core.ops.control import Barrier, Breakpoint, Print
from tile_core.ops.rule import Rule
from tile_core.simt.accesses import lower_expr
from tile_core.simt.context import SimtContext


def lower_barrier(op: Barrier, ctx: SimtContext) -> Stmt:
    """Return the barrier of the block, of a warp, or of `count` threads.

    Raises
    ------
    UnsupportedOnTarget
        If a barrier spans the grid and could not become the end of a launch.
    """
    if op.scope == "grid":
        raise UnsupportedOnTarget(
            "a barrier of the whole grid stands where a launch cannot end",
            span=op.span,
            hint="move it out of branches and loops, or split the kernel in two",
        )
    if op.scope == "warp":
        return Evaluate(device("sync_warp"))
    if op.number is None and op.count is None:
        return Evaluate(device("sync"))
    number = as_expr(0 if op.number is None else op.number)
    count = as_expr(ctx.threads if op.count is None else op.count)
    name = "bar_arrive" if op.arrives_only else "bar_sync"
    return Evaluate(device(name, lower_expr(number, ctx), lower_expr(count, ctx)))


def lower_print(op: Print, ctx: SimtContext) -> Stmt:
    """Return the printing of a tile by the threads that hold it, or of values by each thread.

    A tile is printed element by element as ``message name[i, j] = value``.
    """
    if op.source is None:
        values = tuple(lower_expr(v, ctx) for v in op.values)
        return Evaluate(call("printf", StringConst(_message(op, values)), *values))
    region = op.source
    variables = [ctx.fresh_var(f"p{axis}") for axis in range(len(region.extents))]
    indices = [binary(BinaryOp.ADD, s, v) for s, v in zip(region.starts, variables, strict=True)]
    value = ctx.load(region.buffer, *indices)
    text = (
        f"{op.message}{region.buffer.name}[{', '.join('%d' for _ in indices)}] = {_format(value)}\n"
    )
    body: Stmt = Evaluate(call("printf", StringConst(text), *indices, value))
    body = If(_speaks(op, variables, ctx), body)
    for var, extent in zip(reversed(variables), reversed(region.extents), strict=True):
        body = For(var, as_expr(0), as_expr(extent), as_expr(1), body)
    return Seq((Evaluate(device("sync")), body)) if _is_shared(op) else body


def _is_shared(op: Print) -> bool:
    return op.source is not None and op.source.buffer.scope.value.startswith("shared")


def _speaks(op: Print, variables: list[Var], ctx: SimtContext) -> Expr:
    """Say which thread prints an element: its first owner, or the first thread."""
    from tile_core.ir.buffer import Scope

    region = op.source
    if region is None or region.buffer.scope not in (Scope.FRAGMENT, Scope.REDUCER):
        return binary(BinaryOp.EQ, ctx.thread, 0)
    indices = [binary(BinaryOp.ADD, s, v) for s, v in zip(region.starts, variables, strict=True)]
    owner: Any = ctx.fragment_of(region.buffer).forward_thread(*indices)
    return binary(BinaryOp.EQ, ctx.thread, as_expr(owner))


def _message(op: Print, values: tuple[Expr, ...]) -> str:
    return " ".join([op.message, *(_format(v) for v in values)]).strip() + "\n"


def _format(value: Expr) -> str:
    """Return how C prints a value of this type."""
    if value.dtype.is_float:
        return "%f"
    if value.dtype.bits > 32:
        return "%llu" if value.dtype.kind.value == "uint" else "%lld"
    return "%u" if value.dtype.kind.value == "uint" else "%d"


def lower_breakpoint(op: Breakpoint, ctx: SimtContext) -> Stmt:
    """Return nothing: only the interpreter stops."""
    return Seq(())


def control_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of barriers, printing and breakpoints."""
    return (
        Rule(name="simt.barrier", op=Barrier, lower=lower_barrier),
        Rule(name="simt.print", op=Print, lower=lower_print),
        Rule(name="simt.breakpoint", op=Breakpoint, lower=lower_breakpoint),
    )
