"""Copies into the shared memory of another block of the cluster. PTX ISA, "mapa"."""

from __future__ import annotations

import math
from typing import Any

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, BinaryOp, Const, Expr, Load
from tile_core.ir.stmt import Evaluate, For, If, LoopKind, Stmt, Store
from tile_core.layout import Layout, row_major
from tile_core.machine import SimtMachine
from tile_core.ops.remote_copy import RemoteCopy, inner_shape, is_whole
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.lower_accesses import lower_expr
from tile_core.simt.rules.mbarrier import barrier_address
from tile_core.target import Target

BULK = 16
"""Bytes that the copy engine copies multiples of."""


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
    if not (is_whole(op.src) and is_whole(op.dst)):
        return {
            tile: row_major(tile.static_shape)
            for tile in (src, dst)
            if ctx.layout_of(tile) is None and tile.static_shape is not None
        }
    for known, other in ((src, dst), (dst, src)):
        layout = ctx.layout_of(known)
        if isinstance(layout, Layout):
            return {} if ctx.layout_of(other) is not None else {other: layout}
    if level is not InferLevel.FREE or src.static_shape is None:
        return {}
    return {src: row_major(src.static_shape), dst: row_major(src.static_shape)}


def lower_remote_copy(op: RemoteCopy, ctx: SimtContext) -> Stmt:
    """Return a copy by the copy engine where a barrier counts its bytes, else one by the threads.

    Before   remote_copy S, D, block 1, barrier full[0]        remote_copy S, D, block 1
    After    if tid == 0: bulk_copy_remote(D, 1, S, 4096, full)
             for i < 8: at<uint32>(remote(D, 1))[i*128 + tid] = S[i*128 + tid]

    Raises
    ------
    UnsupportedOnTarget
        If the tiles are stored in different ways, or are no multiple of 16 bytes.
    """
    src, dst = op.src.buffer, op.dst.buffer
    if not _are_alike(op, ctx):
        raise UnsupportedOnTarget(
            f"{src.name!r} and {dst.name!r} are stored in different ways: bytes cannot be copied "
            "as they are",
            span=op.span,
            hint="give both tiles one layout: T.annotate_layout({src: layout, dst: layout})",
        )
    source, target = (_start(region, ctx) for region in (op.src, op.dst))
    is_all = is_whole(op.src)
    count = ctx.layout_of(src).cosize if is_all else math.prod(inner_shape(op.src) or ())
    nbytes = count * source.buffer.dtype.bits // 8
    rank = lower_expr(op.block, ctx)
    if op.barrier is None:
        return _by_threads(source, target, count, rank, ctx)
    odd = next((a for a in (source, target) if _offset_bytes(a) % BULK), None)
    if nbytes % BULK or odd is not None:
        told = f"{nbytes} bytes, no multiple of {BULK}"
        if odd is not None:
            told = f"a part that begins at byte {_offset_bytes(odd)}, no multiple of {BULK}"
        raise UnsupportedOnTarget(
            f"{src.name!r} has {told}: the copy engine cannot copy it",
            span=op.span,
            hint="leave remote_barrier out, and wait with T.cluster_sync()",
        )
    bar = barrier_address(op.barrier, ctx)
    start = Evaluate(device("bulk_copy_remote", target, rank, source, nbytes, bar))
    return start if ctx.threads == 1 else If(binary(BinaryOp.EQ, ctx.thread, 0), start)


def _are_alike(op: RemoteCopy, ctx: SimtContext) -> bool:
    """Whether elements that match lie at the same distance from the first one on both sides."""
    layouts = [ctx.layout_of(region.buffer) for region in (op.src, op.dst)]
    if is_whole(op.src) and is_whole(op.dst):
        return layouts[0].same_function(layouts[1])
    return all(layout.same_function(row_major(layout.shape)) for layout in layouts)


def _offset_bytes(place: AddressOf) -> int:
    """Return how far into its tile an address is, if that is known; else 0."""
    (index,) = place.indices
    return int(index.value) * place.buffer.dtype.bits // 8 if isinstance(index, Const) else 0


def _start(region: Region, ctx: SimtContext) -> AddressOf:
    starts = [lower_expr(s, ctx) if isinstance(s, Expr) else s for s in region.starts]
    return ctx.address(region.buffer, *starts, access="rw")


def _by_threads(
    source: AddressOf, target: AddressOf, count: int, rank: Expr, ctx: SimtContext
) -> Stmt:
    """Let each thread store elements that lie beside those of its neighbours."""
    there = Buffer(
        ctx.names.fresh(f"{target.buffer.name}_there"),
        (count,),
        target.buffer.dtype,
        Scope.SHARED,
        origin=device("remote", target, rank),
    )
    step = ctx.fresh_var("i")
    at = step * ctx.threads + ctx.thread
    store: Stmt = Store(there, (at,), Load(source.buffer, (source.indices[0] + at,)))
    if count % ctx.threads:
        store = If(binary(BinaryOp.LT, at, count), store)
    zero, one = as_expr(0), as_expr(1)
    iterations = as_expr(-(-count // ctx.threads))
    return For(step, zero, iterations, one, store, LoopKind.SERIAL)
