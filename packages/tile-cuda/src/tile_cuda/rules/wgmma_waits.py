"""Waiting for products of warpgroups that were left in flight."""

from __future__ import annotations

from tile_core.analysis.gemms_in_flight import products_before
from tile_core.ir.stmt import Stmt
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.rule import Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, seq
from tile_cuda.rules.wgmma_plan import is_shared_out


def wait_rule(machine: SimtMachine) -> Rule[WaitProducts]:
    """Return the rule for waits: nothing where no MMA is asynchronous."""

    def lower(op: WaitProducts, ctx: SimtContext) -> Stmt:
        return waited(op, op.pending, ctx) if machine.has("async_mma") else seq()

    return Rule(name="cuda.wait_products", op=WaitProducts, lower=lower)


def waited(op: WaitProducts | Gemm, pending: int, ctx: SimtContext) -> Stmt:
    """Return the wait of `op`, and what keeps accumulators from being read before it.

    Before   gemm Q, K, scores (left in flight);  gemm P, V, acc (so too);  wait_products 1
    After    ...;  wgmma_wait<1>;  wgmma_pin(scores)

    Of the MMAs that can have been begun before, and of `op` if it is one, the latest
    `pending` are not touched: they may be in flight still. Those that warps computed after all,
    as their tiles lie, are over.
    """
    begun = [*products_before(ctx.launch.body, op), *([op] if isinstance(op, Gemm) else [])]
    latest = list(dict.fromkeys(reversed(begun)))
    over = {gemm for gemm in latest if not is_shared_out(gemm, ctx)}
    going_on = {gemm.c.buffer for gemm in latest[:pending] if gemm not in over}
    ended = dict.fromkeys(g.c.buffer for g in latest[pending:] if g not in over)
    pins = [
        do("async_mma_pin", ctx.fragment_of(buffer).slots, at(ctx.places.flat(buffer), 0))
        for buffer in ended
        if buffer not in going_on
    ]
    return seq(do("async_mma_wait", pending - len(over.intersection(latest[:pending]))), *pins)
