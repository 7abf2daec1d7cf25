"""Sequential loops as TIR, and the jumps that leave them: see `tile_cpu.lowering.statements`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.ir import visitor
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Expr
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Check, CheckKind, For, LoopKind, Pipelined, Stmt, While
from tile_core.ops.signals import WaitSignal
from tile_cpu.lowering.context import Context, assigned, loaded
from tile_cpu.lowering.types import number, scalar_name
from tile_cpu.tir.build import i32, seq
from tile_cpu.tir.nodes import Bind, ForKind, IfThenElse, IntImm, PrimExpr, tirx
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar
from tile_cpu.tir.nodes import While as TirWhile

_UNROLL_LIMIT = 64


def jumps(stmt: Stmt) -> bool:
    """Whether running `stmt` may skip what follows it."""
    stops = (
        isinstance(n, WaitSignal) or n.kind is CheckKind.ASSERT
        for n in nodes_of(stmt, Check, WaitSignal)
    )
    return visitor.jumps(stmt) or any(stops)


def emit_loop(ctx: Context, stmt: For | Pipelined) -> TirStmt:
    """Return the TIR of a loop that counts."""
    if static_value(stmt.step) != 1 or jumps(stmt.body):
        return _general_loop(ctx, stmt)
    with ctx.statement() as statements:
        kind = str(stmt.var.dtype)
        start, stop = ctx.index(stmt.start, kind), ctx.index(stmt.stop, kind)
        unroll = isinstance(stmt, For) and stmt.kind is LoopKind.UNROLL
        body = counted(ctx, stmt, start, stop, lambda: ctx.lower_stmt(stmt.body), unroll=unroll)
    return seq(statements, body)


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
        outer, ctx.iteration = ctx.iteration, loop.var
        inner = body()
        ctx.iteration = outer
    short = isinstance(extent, IntImm) and extent.value <= _UNROLL_LIMIT
    kind = ForKind.UNROLLED if unroll and short else ForKind.SERIAL
    if not (isinstance(start, IntImm) and start.value == 0):
        extent = tirx.Max(extent, number(0, scalar_name(extent)))
    return TirFor(named, start, extent, kind, inner)


def _general_loop(ctx: Context, stmt: For | Pipelined) -> TirStmt:
    """Emit a loop that counts in steps, or may be left early, with a variable of its own."""
    kind = str(stmt.var.dtype)
    jumping = jumps(stmt.body)
    with ctx.statement() as statements:
        start, stop = ctx.index(stmt.start, kind), ctx.index(stmt.stop, kind)
        stride = ctx.index(stmt.step, kind)
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
        with ctx.scope(ctx.env.in_loop(stmt)):
            named = TirVar(stmt.var.name, start.ty)
            ctx.vars[stmt.var] = named
            if all(isinstance(x, IntImm) for x in (start, stop, stride)):
                ctx.iterations[stmt.var] = range(*(int(x.value) for x in (start, stop, stride)))
            body = [Bind(named, loaded(counter)), ctx.lower_stmt(stmt.body)]
        advance = assigned(counter, loaded(counter) + stride)
        if jumping:
            loop = _jumping_loop(ctx, more, body, advance)
        else:
            loop = TirWhile(more, seq(body, advance))
    return seq(statements, loop)


def _jumping_loop(ctx: Context, more: PrimExpr, body: Any, advance: TirStmt) -> TirStmt:
    """Return ``while more``, minding the block's `jump` variable."""
    assert ctx.jump is not None
    jump = ctx.jump
    here = loaded(jump)
    next_iteration = IfThenElse(tirx.EQ(here, i32(1)), assigned(jump, i32(0)), None)
    going = tirx.And(more, tirx.EQ(here, i32(0)))
    left = IfThenElse(tirx.EQ(here, i32(2)), assigned(jump, i32(0)), None)
    return seq(TirWhile(going, seq(body, next_iteration, advance)), left)


def emit_while(ctx: Context, stmt: While) -> TirStmt:
    """Emit a loop whose condition is computed before the first iteration and after each."""
    with ctx.statement() as statements:
        go = ctx.cell("int32", "go")
        test = _tested(ctx, stmt.cond, go)
        ctx.run(test)
        more = tirx.NE(loaded(go), i32(0))
        with ctx.scope():
            body = ctx.lower_stmt(stmt.body)
        again = _tested(ctx, stmt.cond, go)
        if jumps(stmt.body):
            loop = _jumping_loop(ctx, more, body, again)
        else:
            loop = TirWhile(more, seq(body, again))
    return seq(statements, loop)


def _tested(ctx: Context, cond: Expr, go: Any) -> TirStmt:
    with ctx.statement() as statements:
        value = ctx.value(cond)
    return seq(statements, assigned(go, tirx.Cast(i32(0).ty, value)))
