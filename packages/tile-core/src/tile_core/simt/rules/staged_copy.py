"""Copies of register tiles to where other threads than their holders write, or all of them."""

from __future__ import annotations

from tile_core.errors import ShapeMismatch, Span
from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Region, static_value, whole
from tile_core.ir.stmt import Parallel, Seq, Stmt
from tile_core.layout.loop import LoopLayout, planned
from tile_core.ops.copy import Copy
from tile_core.ops.pairing import boxes
from tile_core.ops.parallel_form import as_parallel
from tile_core.passes.lower_serially import nested_loops
from tile_core.passes.uniformity import Uniformity
from tile_core.simt.build import do
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_element_wise
from tile_core.simt.packing import is_packed
from tile_core.simt.partition import partition
from tile_core.simt.staging import by_each_thread, copied_in, copied_out, held_by


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
    nest = as_parallel(op)
    if op.moving_part is not None:
        return _of_moving_part(op, op.moving_part, ctx)
    if dst.buffer.scope.is_spread:
        return partition(nest, _holders(dst, nest, ctx), ctx)
    layout = _holders(src, nest, ctx)
    if layout.threads == ctx.threads and layout.fragment.is_fully_replicated():
        return partition(nest, layout, ctx)
    shape = tuple(layout.extents)
    space = whole(ctx.scratch_tile("everywhere", shape, str(op.src.buffer.dtype)))
    there = as_parallel(Copy(op.src, space, span=op.span))
    sync = do("sync", span=op.span)
    return Seq(
        (
            partition(there, _holders(src, there, ctx), ctx),
            sync,
            lower_element_wise(Copy(space, op.dst, span=op.span), ctx),
            sync,
        )
    )


def _of_moving_part(op: Copy, held: Region, ctx: SimtContext) -> Stmt:
    """Return the copy of a part of a register tile that begins at a place known at run time.

    Where each thread names a place of its own, all of the tile goes through shared memory.
    """
    tile, sync = held.buffer, do("sync", span=op.span)
    writes = held.buffer is op.dst.buffer
    dtype = str(tile.dtype)
    uniform = Uniformity(ctx.launch)
    if any(uniform.varies(as_expr(start)) for start in held.starts):
        space = ctx.scratch_tile("everywhere", tile.static_shape or (), dtype)
        part = Region(space, held.starts, held.extents, span=held.span)
        mine = Copy(op.src, part, span=op.span) if writes else Copy(part, op.dst, span=op.span)
        back = (copied_out(space, whole(tile), ctx), sync) if writes else ()
        each = by_each_thread(nested_loops(as_parallel(mine)), ctx)
        return Seq((copied_in(whole(tile), space, tile.dtype, ctx), sync, each, sync, *back))
    if writes:
        return held_by(op, ctx)
    space = ctx.scratch_tile("everywhere", held.static_extents or (), dtype)
    each = lower_element_wise(Copy(whole(space), op.dst, span=op.span), ctx)
    return Seq((copied_in(held, space, tile.dtype, ctx), sync, each, sync))


def _holders(region: Region, nest: Parallel, ctx: SimtContext) -> LoopLayout:
    """Return the loop in which those who hold an element of `region` run its iteration."""
    extents = [static_value(e) for e in nest.extents]
    known = tuple(e for e in extents if e is not None)
    if len(known) < len(extents):
        raise _of_unknown_extents(region, nest.span)
    found: LoopLayout = ctx.places.layouts.loop_of_region(region, known, ctx.threads)
    return found


def _of_unknown_extents(region: Region, span: Span | None) -> ShapeMismatch:
    return ShapeMismatch(
        f"a copy of the register tile {region.buffer.name!r} needs extents known at compile time",
        span=span,
        hint="copy whole tiles",
    )
