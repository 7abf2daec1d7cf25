"""Copies into the shared memory of another block of the cluster. PTX ISA, "mapa"."""

from __future__ import annotations

from typing import Any

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.arith import as_expr, binary
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.device_calls import device
from tile_core.ir.expr import AddressOf, BinaryOp, Expr, Load
from tile_core.ir.stmt import Evaluate, For, If, LoopKind, Stmt, Store
from tile_core.layout import Layout, row_major
from tile_core.machine import SimtMachine
from tile_core.ops.operator import InferContext, InferLevel, LayoutMap
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.ops.rule import Rule
from tile_core.simt.accesses import lower_expr
from tile_core.simt.context import SimtContext
from tile_core.simt.rules.mbarrier import barrier_address
from tile_core.target import Target

BULK = 16
"""Bytes that the engine copies multiples of."""


def remote_copy_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the rule of copies between blocks of a cluster, where `machine` has clusters."""

    def rejects(op: RemoteCopy, target: Target) -> str | None:
        return None if machine.has("clusters") else f"{machine.name} has no clusters of blocks"

    return (
        Rule(
            name="cuda.remote_copy",
            op=RemoteCopy,
            lower=lower_remote_copy,
            infer_layout=infer_remote_copy,
            rejects=rejects,
        ),
    )


def infer_remote_copy(op: RemoteCopy, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return one layout for both tiles: that which one of them has, or rows."""
    src, dst = op.src.buffer, op.dst.buffer
    for known, other in ((src, dst), (dst, src)):
        layout = ctx.layout_of(known)
        if isinstance(layout, Layout):
            return {} if ctx.layout_of(other) is not None else {other: layout}
    if level is not InferLevel.FREE or src.static_shape is None:
        return {}
    return {src: row_major(src.static_shape), dst: row_major(src.static_shape)}


def lower_remote_copy(op: RemoteCopy, ctx: SimtContext) -> Stmt:
    """Return a copy by the engine where a barrier counts its bytes, else one by the threads.

    Before   remote_copy S, D, block 1, barrier full[0]        remote_copy S, D, block 1
    After    if tid == 0: bulk_copy_remote(D, 1, S, 4096, full)
             for i < 8: at<uint32>(remote(D, 1))[i*128 + tid] = S[i*128 + tid]

    Raises
    ------
    UnsupportedOnTarget
        If the tiles are stored in different ways, or are no multiple of 16 bytes.
    """
    src, dst = op.src.buffer, op.dst.buffer
    if not ctx.layout_of(src).same_function(ctx.layout_of(dst)):
        raise UnsupportedOnTarget(
            f"{src.name!r} and {dst.name!r} are stored in different ways: bytes cannot be copied "
            "as they are",
            span=op.span,
            hint="give both tiles one layout: T.annotate_layout({src: layout, dst: layout})",
        )
    source, target = ctx.places.flat(src), ctx.places.flat(dst)
    nbytes = source.nbytes or 0
    rank = lower_expr(op.block, ctx)
    if op.barrier is None:
        return _by_threads(source, target, rank, ctx)
    if nbytes % BULK:
        raise UnsupportedOnTarget(
            f"{src.name!r} has {nbytes} bytes, no multiple of {BULK}: the engine cannot copy it",
            span=op.span,
            hint="leave remote_barrier out, and wait with T.cluster_sync()",
        )
    bar = barrier_address(op.barrier, ctx)
    zero = (as_expr(0),)
    start = Evaluate(
        device(
            "bulk_copy_remote",
            AddressOf(target, zero, "w"),
            rank,
            AddressOf(source, zero, "r"),
            nbytes,
            bar,
        )
    )
    return start if ctx.threads == 1 else If(binary(BinaryOp.EQ, ctx.thread, 0), start)


def _by_threads(source: Buffer, target: Buffer, rank: Expr, ctx: SimtContext) -> Stmt:
    """Let each thread store elements that lie beside those of its neighbours."""
    count = source.static_shape[0] if source.static_shape else 0
    there = Buffer(
        ctx.names.fresh(f"{target.name}_there"),
        (count,),
        target.dtype,
        Scope.SHARED,
        origin=device("remote", AddressOf(target, (as_expr(0),), "w"), rank),
    )
    step = ctx.fresh_var("i")
    at = step * ctx.threads + ctx.thread
    store: Stmt = Store(there, (at,), Load(source, (at,)))
    if count % ctx.threads:
        store = If(binary(BinaryOp.LT, at, count), store)
    zero, one = as_expr(0), as_expr(1)
    rounds = as_expr(-(-count // ctx.threads))
    return For(step, zero, rounds, one, store, LoopKind.SERIAL)
