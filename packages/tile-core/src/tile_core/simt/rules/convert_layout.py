"""Copies between register tiles of which different threads hold the elements."""

from __future__ import annotations

import math

from tile_core.errors import ShapeMismatch
from tile_core.ir.buffer import Scope, whole
from tile_core.ir.stmt import Seq, Stmt
from tile_core.layout import Layout, padded
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import boxes, pair
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.exchange_batches import batches
from tile_core.simt.expr_builders import do, seq
from tile_core.simt.shared_staging import copied_in, held_by
from tile_core.simt.subbyte_access import storage_dtype


def lower_layout_conversion(op: Copy, ctx: SimtContext) -> Stmt:
    """Return a copy by way of shared memory.

    Before   copy scores, weights   (held by different threads)
    After    parallel: space = scores;  barrier;  parallel: weights = space;  barrier

    In batches, one after the other, where not all of it fits beside the kernel's tiles.

    Raises
    ------
    ShapeMismatch
        If the extents of the source are known at run time only.
    """
    src, dst = boxes(op.src, op.dst)
    shape = src.static_extents
    if shape is None or dst.static_extents is None:
        raise ShapeMismatch(
            "a copy between register tiles that are spread differently needs extents known "
            "at compile time",
            span=op.span,
            hint="copy whole tiles",
        )
    narrow = min((op.src.buffer.dtype, op.dst.buffer.dtype), key=lambda dtype: dtype.bits)
    layout = _without_collisions(shape, storage_dtype(narrow, Scope.SHARED).bits, ctx)
    parts = _batches(op, shape, storage_dtype(narrow, Scope.SHARED).bits, layout, ctx)
    if parts:
        return seq(*(lower_layout_conversion(part, ctx) for part in parts))
    tile = ctx.scratch_tile("exchange", shape, str(narrow), layout)
    sync = do("sync", span=op.span)
    width = max(1, ctx.machine.vector_bytes * 8 // narrow.bits)
    there = copied_in(src, tile, tile.dtype, ctx, width)
    back = held_by(Copy(whole(tile), op.dst, span=op.span), ctx, width)
    return Seq((there, sync, back, sync))


def _batches(
    op: Copy, shape: tuple[int, ...], bits: int, layout: Layout | None, ctx: SimtContext
) -> list[Copy]:
    """Return the copies that take turns in shared memory; none if `op` needs no turns."""
    src, dst = boxes(op.src, op.dst)
    pairing = pair(op.src, op.dst)
    there = {
        dim: pairing.dst_axes.index(axis)
        for dim, axis in enumerate(pairing.src_axes)
        if axis is not None and axis in pairing.dst_axes
    }
    if layout:  # padding is behind whole rows
        there.pop(len(shape) - 1, None)
    nbytes = math.prod(layout.output_shape if layout else shape) * bits // 8
    return [
        replace(op, src=batch.of(src, batch.dim), dst=batch.of(dst, there[batch.dim]))
        for batch in batches(shape, nbytes, there, ctx)
    ]


def _without_collisions(shape: tuple[int, ...], bits: int, ctx: SimtContext) -> Layout | None:
    """Return a layout in which neighbouring rows lie in different banks; None for by rows.

    Rows that fill all banks would collide; one more vector behind each of them moves the next.
    Unlike a swizzle it leaves the distances within a thread's part constant.
    """
    machine = ctx.machine
    fills = len(shape) > 1 and shape[-1] * bits % (machine.banks * 32) == 0
    return padded(shape, machine.vector_bytes * 8 // bits) if fills else None
