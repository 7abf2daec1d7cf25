"""Copies of register tiles to where other threads than their holders write, or all of them."""

from __future__ import annotations

from tile_core.analysis.uniformity import Uniformity
from tile_core.errors import ShapeMismatch, Span
from tile_core.ir.buffer import Region, static_value, whole
from tile_core.ir.build_expr import as_expr
from tile_core.ir.stmt import Seq, Stmt
from tile_core.layout.loop_layout import planned
from tile_core.ops.copy import Copy
from tile_core.ops.parallel_form import as_parallel
from tile_core.ops.region_pairing import boxes
from tile_core.passes.lower_serially import nested_loops
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_element_wise
from tile_core.simt.expr_builders import do
from tile_core.simt.partition import partition
from tile_core.simt.shared_staging import by_each_thread, copied_in, copied_out, held_by
from tile_core.simt.subbyte_access import is_packed


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
