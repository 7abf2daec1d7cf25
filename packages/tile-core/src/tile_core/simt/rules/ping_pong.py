"""Turns of two groups of warps as programs of one thread."""

from __future__ import annotations

from typing import Any

from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import If, Seq, Stmt
from tile_core.machine import SimtMachine
from tile_core.ops.control import GROUP, PingPongOrder, PingPongStep
from tile_core.ops.rule import Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do
from tile_core.simt.lower_accesses import lower_expr


def ping_pong_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the rule of the ping-pong schedule: nothing where MMAs are not asynchronous."""

    def lower(op: PingPongOrder, ctx: SimtContext) -> Stmt:
        return lower_ping_pong(op, ctx) if machine.has("async_mma") else Seq(())

    return (Rule(name="simt.ping_pong", op=PingPongOrder, lower=lower),)


def lower_ping_pong(op: PingPongOrder, ctx: SimtContext) -> Stmt:
    """Return the wait or the arrival on one of two named barriers.

    Before   ping_pong take;  …;  ping_pong give
    After    if tid < 128: bar_sync(13, 256) else: bar_sync(12, 256)
             …;  if tid < 128: bar_arrive(12, 256) else if goes on: bar_arrive(13, 256)

    Each barrier counts the half that waits and the half that arrives. Numbers are constants:
    with one in a register the assembler would keep all of them.
    """
    both = 2 * GROUP
    first, second = (ctx.named_barrier(("turn", group), op.span) for group in (0, 1))
    is_first = binary(BinaryOp.LT, ctx.thread, GROUP)
    match op.step:
        case PingPongStep.OFFER:
            is_second = binary(BinaryOp.GE, ctx.thread, GROUP)
            return If(_and(is_second, op, ctx), do("bar_arrive", first, both))
        case PingPongStep.TAKE:
            return If(is_first, do("bar_sync", first, both), do("bar_sync", second, both))
        case PingPongStep.GIVE:
            back: Stmt = do("bar_arrive", first, both)
            if op.goes_on is not None:
                back = If(lower_expr(op.goes_on, ctx), back)
            return If(is_first, do("bar_arrive", second, both), back)


def _and(condition: Any, op: PingPongOrder, ctx: SimtContext) -> Any:
    if op.goes_on is None:
        return condition
    return binary(BinaryOp.AND, condition, lower_expr(as_expr(op.goes_on), ctx))
