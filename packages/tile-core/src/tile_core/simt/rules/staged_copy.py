"""Copies of register tiles to where other threads than their holders write, or all of them."""

from __future__ import annotations

from tile_core.errors import ShapeMismatch, Span
from tile_core.ir.buffer import Region, static_value, whole
from tile_core.ir.stmt import Parallel, Seq, Stmt
from tile_core.layout.loop import LoopLayout, planned
from tile_core.ops.copy import Copy
from tile_core.ops.pairing import boxes
from tile_core.ops.parallel_form import as_parallel
from tile_core.simt.build import do
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_element_wise
from tile_core.simt.packing import is_packed
from tile_core.simt.partition import partition
from tile_core.simt.staging import copied_in


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


def _holders(region: Region, nest: Parallel, ctx: SimtContext) -> LoopLayout:
    """Return the loop in which those who hold an element of `region` run its iteration."""
    extents = [static_value(e) for e in nest.extents]
    known = tuple(e for e in extents if e is not None)
    if len(known) < len(extents):
        raise _of_unknown_extents(region, nest.span)
    if any(static_value(start) is None for start in region.starts):
        raise ShapeMismatch(
            f"a copy between a part of the register tile {region.buffer.name!r} and what each "
            "thread has for itself needs a place known at compile time",
            span=nest.span,
            hint="copy by way of a T.alloc_shared tile",
        )
    found: LoopLayout = ctx.places.layouts.loop_of_region(region, known, ctx.threads)
    return found


def _of_unknown_extents(region: Region, span: Span | None) -> ShapeMismatch:
    return ShapeMismatch(
        f"a copy of the register tile {region.buffer.name!r} needs extents known at compile time",
        span=span,
        hint="copy whole tiles",
    )
