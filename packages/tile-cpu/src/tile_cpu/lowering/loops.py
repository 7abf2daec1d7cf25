"""Sequential loops as TIR, and the jumps that leave them: see `tile_cpu.lowering.statements`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tile_core.ir.expr import Const, Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import (
    Break,
    Check,
    CheckKind,
    Continue,
    For,
    LoopKind,
    Pipelined,
    While,
)
from tile_cpu.lowering.context import Context, assigned, loaded, sequence
from tile_cpu.lowering.types import number, scalar_name
from tile_cpu.tir.build import i32, seq
from tile_cpu.tir.nodes import Bind, ForKind, IfThenElse, IntImm, PrimExpr, tirx
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar
from tile_cpu.tir.nodes import While as TirWhile

_UNROLL_LIMIT = 64


def jumps(stmt: Node) -> bool:
    """Whether running `stmt` may skip what follows it."""
    return any(True for _ in _jumps(stmt, in_loop=False))


def _jumps(stmt: Node, *, in_loop: bool) -> Iterator[Node]:
    match stmt:
        case Break() | Continue():
            if not in_loop:
                yield stmt
        case Check(kind=CheckKind.ASSERT):
            yield stmt
        case Expr():
            return
        case _:
            inside = in_loop or isinstance(stmt, (For, While, Pipelined))
            for child in stmt.children():
                if not isinstance(child, Expr):
                    yield from _jumps(child, in_loop=inside)


def emit_loop(ctx: Context, stmt: For | Pipelined) -> TirStmt:
    """Return the TIR of a loop that counts."""
    step: Expr | None = stmt.step if isinstance(stmt, For) else None
    unit = step is None or (isinstance(step, Const) and step.value == 1)
    if not unit or jumps(stmt.body):
        return _general_loop(ctx, stmt, step)
    with ctx.statement() as statements:
        kind = str(stmt.var.dtype)
        start, stop = ctx.index(stmt.start, kind), ctx.index(stmt.stop, kind)
        unroll = isinstance(stmt, For) and stmt.kind is LoopKind.UNROLL
        body = counted(ctx, stmt, start, stop, lambda: ctx.stmt(stmt.body), unroll=unroll)
    return sequence(statements, body)


def counted(
    ctx: Context,
    loop: For | Pipelined,
    start: PrimExpr,
    stop: PrimExpr,
    body: Callable[[], TirStmt],
    *,
    unroll: bool = False,
) -> TirStmt:
    """Return ``for loop.var in range(start, stop)`` around what `body` emits."""
    named = TirVar(loop.var.name, start.ty)
    extent = stop - start
    with ctx.scope(ctx.env.with_loop(loop.var, loop.start, loop.stop)):
        ctx.vars[loop.var] = named
        outer, ctx.round = ctx.round, loop.var
        inner = body()
        ctx.round = outer
    short = isinstance(extent, IntImm) and extent.value <= _UNROLL_LIMIT
    kind = ForKind.UNROLLED if unroll and short else ForKind.SERIAL
    if not (isinstance(start, IntImm) and start.value == 0):
        extent = tirx.Max(extent, number(0, scalar_name(extent)))
    return TirFor(named, start, extent, kind, inner)


def _general_loop(ctx: Context, stmt: For | Pipelined, step: Expr | None) -> TirStmt:
    """Emit a loop that counts in steps, or may be left early, with a variable of its own."""
    kind = str(stmt.var.dtype)
    jumping = jumps(stmt.body)
    with ctx.statement() as statements:
        start, stop = ctx.index(stmt.start, kind), ctx.index(stmt.stop, kind)
        stride = number(1, kind) if step is None else ctx.index(step, kind)
        counter = ctx.cell(kind, stmt.var.name)
        ctx.run(assigned(counter, start))
        forward, ahead = tirx.LT(loaded(counter), stop), tirx.GT(loaded(counter), stop)
        if isinstance(stride, IntImm):
            more = forward if stride.value > 0 else ahead
        else:
            positive = tirx.GT(stride, number(0, kind))
            more = tirx.Or(
                tirx.And(positive, forward), tirx.And(tirx.LT(stride, number(0, kind)), ahead)
            )
        with ctx.scope(_stepping(ctx, stmt, step)):
            named = TirVar(stmt.var.name, start.ty)
            ctx.vars[stmt.var] = named
            if all(isinstance(x, IntImm) for x in (start, stop, stride)):
                ctx.rounds[stmt.var] = range(*(int(x.value) for x in (start, stop, stride)))
            body = [Bind(named, loaded(counter)), ctx.stmt(stmt.body)]
        advance = assigned(counter, loaded(counter) + stride)
        if jumping:
            loop = _jumping_loop(ctx, more, body, advance)
        else:
            loop = TirWhile(more, seq(body, advance))
    return sequence(statements, loop)


def _stepping(ctx: Context, stmt: For | Pipelined, step: Expr | None) -> Any:
    """Return what is known of the index inside the loop."""
    if step is None or (isinstance(step, Const) and step.value > 0):
        return ctx.env.with_loop(stmt.var, stmt.start, stmt.stop)
    if isinstance(step, Const):
        low, high = ctx.env.linear(stmt.stop).plus(1), ctx.env.linear(stmt.start)
        return ctx.env.with_bounds(stmt.var, low, high)
    return ctx.env


def _jumping_loop(ctx: Context, more: PrimExpr, body: Any, advance: TirStmt) -> TirStmt:
    """Return ``while more``, minding the block's `jump` variable."""
    assert ctx.jump is not None
    jump = ctx.jump
    here = loaded(jump)
    next_round = IfThenElse(tirx.EQ(here, i32(1)), assigned(jump, i32(0)), None)
    going = tirx.And(more, tirx.EQ(here, i32(0)))
    left = IfThenElse(tirx.EQ(here, i32(2)), assigned(jump, i32(0)), None)
    return seq(TirWhile(going, seq(body, next_round, advance)), left)


def emit_while(ctx: Context, stmt: While) -> TirStmt:
    """Emit a loop whose condition is computed before the first round and after each."""
    with ctx.statement() as statements:
        go = ctx.cell("int32", "go")
        test = _tested(ctx, stmt.cond, go)
        ctx.run(test)
        more = tirx.NE(loaded(go), i32(0))
        with ctx.scope():
            body = ctx.stmt(stmt.body)
        again = _tested(ctx, stmt.cond, go)
        if jumps(stmt.body):
            loop = _jumping_loop(ctx, more, body, again)
        else:
            loop = TirWhile(more, seq(body, again))
    return sequence(statements, loop)


def _tested(ctx: Context, cond: Expr, go: Any) -> TirStmt:
    with ctx.statement() as statements:
        value = ctx.value(cond)
    return sequence(statements, assigned(go, tirx.Cast(i32(0).ty, value)))
