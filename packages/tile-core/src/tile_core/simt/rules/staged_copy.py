"""Copies of register tiles by way of shared memory: other threads write than hold the elements."""

from __future__ import annotations

import math

from tile_core.analysis.uniformity import Uniformity
from tile_core.errors import ShapeMismatch, Span
from tile_core.ir.buffer import Region, Scope, static_value, whole
from tile_core.ir.build_expr import as_expr
from tile_core.ir.stmt import Seq, Stmt
from tile_core.layout import Layout, padded
from tile_core.layout.loop_layout import planned
from tile_core.ops.copy import Copy
from tile_core.ops.parallel_form import as_parallel
from tile_core.ops.region_pairing import boxes, pair
from tile_core.passes.lower_serially import nested_loops
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_element_wise
from tile_core.simt.expr_builders import do, seq
from tile_core.simt.partition import partition
from tile_core.simt.shared_staging import batches, by_each_thread, copied_in, copied_out, held_by
from tile_core.simt.subbyte_access import is_packed, storage_dtype


def is_half_private(op: Copy) -> bool:
    """Whether one side is spread over threads and each thread has the other for itself."""
    a, b = op.src.buffer.scope, op.dst.buffer.scope
    return (a.is_spread and b.is_thread_private) or (b.is_spread and a.is_thread_private)


def needs_whole_bytes(op: Copy) -> bool:
    """Whether elements that share bytes are written by threads that hold single ones."""
    return op.src.buffer.scope.is_spread and is_packed(op.dst.buffer)


def lower_by_memory(op: Copy, ctx: SimtContext) -> Stmt:
    """Return a copy of register tiles by way of shared memory.

    Before   copy tile, packed
    After    parallel: space = tile;  barrier;  parallel: packed = space;  barrier
    """
    src, _ = boxes(op.src, op.dst)
    extents = src.static_extents
    if extents is None:
        raise _of_unknown_extents(op.src, op.span)
    tile = ctx.scratch_tile("bytes", extents, str(op.dst.buffer.dtype))
    back = as_parallel(Copy(whole(tile), op.dst, span=op.span))
    sync = do("sync", span=op.span)
    sizes = tuple(static_value(e) or 1 for e in back.extents)
    return Seq(
        (
            copied_in(src, tile, tile.dtype, ctx),
            sync,
            partition(back, planned(sizes, ctx.threads, 2), ctx),
            sync,
        )
    )


def lower_half_private(op: Copy, ctx: SimtContext) -> Stmt:
    """Return a copy into the elements that a thread holds, or of all elements into each thread.

    Before   copy tile, mine
    After    parallel: space = tile;  barrier;  for every element: mine = space;  barrier

    Raises
    ------
    ShapeMismatch
        If the extents of a register tile are known at run time only.
    """
    src, dst = boxes(op.src, op.dst)
    writes = dst.buffer.scope.is_spread
    held = dst if writes else src
    if held.static_extents is None:
        raise _of_unknown_extents(held, op.span)
    moves = op.moving_part is not None
    if moves and any(map(Uniformity(ctx.launch).varies, map(as_expr, held.starts))):
        return _at_own_places(op, held, ctx)
    if writes:
        return held_by(op, ctx)
    fragment = ctx.fragment_of(src.buffer)
    if not moves and fragment.thread_extent == ctx.threads and fragment.is_fully_replicated():
        return by_each_thread(nested_loops(as_parallel(op)), ctx)
    space = ctx.scratch_tile("everywhere", held.static_extents, str(src.buffer.dtype))
    each = lower_element_wise(Copy(whole(space), op.dst, span=op.span), ctx)
    sync = do("sync", span=op.span)
    return Seq((copied_in(src, space, space.dtype, ctx), sync, each, sync))


def _at_own_places(op: Copy, held: Region, ctx: SimtContext) -> Stmt:
    """Return the copy of parts of which each thread names its own: by way of all of the tile."""
    tile, sync = held.buffer, do("sync", span=op.span)
    space = ctx.scratch_tile("everywhere", tile.static_shape or (), str(tile.dtype))
    part = Region(space, held.starts, held.extents, span=held.span)
    writes = tile is op.dst.buffer
    mine = Copy(op.src, part, span=op.span) if writes else Copy(part, op.dst, span=op.span)
    each = by_each_thread(nested_loops(as_parallel(mine)), ctx)
    back = (copied_out(space, whole(tile), ctx), sync) if writes else ()
    return Seq((copied_in(whole(tile), space, tile.dtype, ctx), sync, each, sync, *back))


def _of_unknown_extents(region: Region, span: Span | None) -> ShapeMismatch:
    return ShapeMismatch(
        f"a copy of the register tile {region.buffer.name!r} needs extents known at compile time",
        span=span,
        hint="copy whole tiles",
    )


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
