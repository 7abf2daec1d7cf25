"""Copies between register tiles of which different threads hold the elements."""

from __future__ import annotations

from tile_core.errors import ShapeMismatch
from tile_core.ir.buffer import Scope, whole
from tile_core.ir.stmt import Seq, Stmt
from tile_core.layout import Layout, padded
from tile_core.ops.copy import Copy
from tile_core.ops.pairing import boxes
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do
from tile_core.simt.shared_staging import copied_in, held_by
from tile_core.simt.subbyte_access import storage_dtype


def lower_layout_conversion(op: Copy, ctx: SimtContext) -> Stmt:
    """Return a copy by way of shared memory.

    Before   copy scores, weights   (held by different threads)
    After    parallel: space = scores;  barrier;  parallel: weights = space;  barrier

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
    tile = ctx.scratch_tile("exchange", shape, str(narrow), layout)
    sync = do("sync", span=op.span)
    width = max(1, ctx.machine.vector_bytes * 8 // narrow.bits)
    there = copied_in(src, tile, tile.dtype, ctx, width)
    back = held_by(Copy(whole(tile), op.dst, span=op.span), ctx, width)
    return Seq((there, sync, back, sync))


def _without_collisions(shape: tuple[int, ...], bits: int, ctx: SimtContext) -> Layout | None:
    """Return a layout in which neighbouring rows lie in different banks; None for by rows.

    Rows that fill all banks would collide; one more vector behind each of them moves the next.
    Unlike a swizzle it leaves the distances within a thread's part constant.
    """
    machine = ctx.machine
    fills = len(shape) > 1 and shape[-1] * bits % (machine.banks * 32) == 0
    return padded(shape, machine.vector_bytes * 8 // bits) if fills else None
