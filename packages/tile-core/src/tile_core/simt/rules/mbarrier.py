"""Barriers in shared memory as programs of one thread."""

from __future__ import annotations

from typing import Any

from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import AddressOf, BinaryOp
from tile_core.ir.stmt import If, Seq, Stmt
from tile_core.ops.async_copy import CopyArrive
from tile_core.ops.control import ClusterSync
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait, SetRegisters
from tile_core.ops.operator import TileOperator
from tile_core.ops.rule import Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do
from tile_core.simt.lower_accesses import lower_expr
from tile_core.target import Target


def mbarrier_rules(has_barriers: bool, moves_registers: bool) -> tuple[Rule[Any], ...]:
    """Return the rules of barriers in memory.

    The machine may have no barriers that count bytes, or warp groups that cannot hand registers
    to each other.
    """

    def rejects(op: TileOperator, target: Target) -> str | None:
        return None if has_barriers else f"{target} has no barriers that count bytes"

    def set_registers(op: SetRegisters, ctx: SimtContext) -> Stmt:
        return lower_set_registers(op, ctx) if moves_registers else Seq(())

    return (
        Rule(name="simt.barrier_init", op=BarrierInit, lower=lower_init, rejects=rejects),
        Rule(name="simt.barrier_arrive", op=BarrierArrive, lower=lower_arrive, rejects=rejects),
        Rule(name="simt.copy_arrive", op=CopyArrive, lower=lower_copy_arrive, rejects=rejects),
        Rule(name="simt.barrier_wait", op=BarrierWait, lower=lower_wait, rejects=rejects),
        Rule(name="simt.cluster_sync", op=ClusterSync, lower=lower_cluster_sync, rejects=rejects),
        Rule(name="simt.set_registers", op=SetRegisters, lower=set_registers),
    )


def barrier_address(barrier: Region, ctx: SimtContext) -> AddressOf:
    """Return the address of one barrier."""
    (start,) = barrier.starts
    lowered = lower_expr(start, ctx) if not isinstance(start, int) else start
    return ctx.address(barrier.buffer, lowered)


def lower_init(op: BarrierInit, ctx: SimtContext) -> Stmt:
    """Let the first thread initialise the barriers.

    Before   barrier_init full, [1, 1]
    After    if tid == 0: mbarrier_init(full + 0, 1);  mbarrier_init(full + 1, 1);  fence
    """
    inits = (
        do("mbarrier_init", ctx.address(op.barriers, k), count) for k, count in enumerate(op.counts)
    )
    return If(binary(BinaryOp.EQ, ctx.thread, 0), Seq((*inits, do("fence_mbarrier_init"))))


def lower_arrive(op: BarrierArrive, ctx: SimtContext) -> Stmt:
    """Let one lane of each warp arrive, after the others' accesses; or one thread with bytes.

    At barriers of several blocks as many lanes arrive, one at each.
    """
    bar = barrier_address(op.barrier, ctx)
    if op.nbytes:
        arrival = do("mbarrier_arrive_expect_tx", bar, op.nbytes)
        return arrival if ctx.threads == 1 else If(binary(BinaryOp.EQ, ctx.thread, 0), arrival)
    ranks = [lower_expr(rank, ctx) for rank in op.ranks]
    arrivals = [do("mbarrier_arrive_remote", bar, rank) for rank in ranks]
    arrivals = arrivals or [do("mbarrier_arrive", bar)]
    if ctx.threads == 1:
        return Seq(tuple(arrivals))
    by_lanes = (
        If(binary(BinaryOp.EQ, ctx.lane, lane), arrive) for lane, arrive in enumerate(arrivals)
    )
    return Seq((do("sync_warp"), *by_lanes))


def lower_copy_arrive(op: CopyArrive, ctx: SimtContext) -> Stmt:
    """Let the copies of every thread arrive, each thread's on its own."""
    return do("async_copy_mbarrier_arrive", barrier_address(op.barrier, ctx))


def lower_cluster_sync(op: ClusterSync, ctx: SimtContext) -> Stmt:
    """Let every thread wait for those of all blocks of the cluster."""
    return do("cluster_sync")


def lower_wait(op: BarrierWait, ctx: SimtContext) -> Stmt:
    """Let every thread wait."""
    return do("mbarrier_wait", barrier_address(op.barrier, ctx), lower_expr(op.parity, ctx))


def lower_set_registers(op: SetRegisters, ctx: SimtContext) -> Stmt:
    """Let the warp groups take or give registers."""
    name = "registers_increase" if op.is_increase else "registers_decrease"
    return do(name, op.count)
