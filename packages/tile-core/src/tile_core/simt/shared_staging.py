"""Tiles on their way through shared memory, in batches where all of one does not fit at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.build_expr import as_expr, binary, cast, const
from tile_core.ir.expr import BinaryOp, Expr, Extent, Load
from tile_core.ir.stmt import If, Parallel, Stmt, Store
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.ops.copy import Copy
from tile_core.ops.region_pairing import boxes, pair
from tile_core.passes.lower_serially import nested_loops
from tile_core.records import dataclass, replace
from tile_core.simt.context import SimtContext
from tile_core.simt.partition import partition, unrolled

Indices = tuple[Expr, ...]
Step = Callable[[Indices, Indices], Stmt]


def copied_in(
    source: Region, tile: Buffer, dtype: DType, ctx: SimtContext, vector: int = 1
) -> Stmt:
    """Return the copy of a region into a shared tile of its extents.

    Each element is converted to `dtype` first, then to the tile's own element type.
    """

    def step(there: Indices, here: Indices) -> Stmt:
        return Store(tile, here, cast(cast(Load(source.buffer, there), dtype), tile.dtype))

    nest, layout = over_region(source, tile.shape, step, ctx, vector)
    return partition(nest, layout, ctx)


def copied_out(tile: Buffer, target: Region, ctx: SimtContext) -> Stmt:
    """Return the copy of a shared tile into a region of its extents, converting elements.

    Each thread copies all of it into an array of its own.
    """

    def step(there: Indices, here: Indices) -> Stmt:
        return Store(target.buffer, there, cast(Load(tile, here), target.buffer.dtype))

    nest, layout = over_region(target, tile.shape, step, ctx)
    if target.buffer.scope.is_thread_private:
        return by_each_thread(nested_loops(nest), ctx)
    return partition(nest, layout, ctx)


def held_by(op: Copy, ctx: SimtContext, vector: int = 1) -> Stmt:
    """Return what the holders of a copy's destination, wherever it begins, take of its source.

    They find it there: in shared memory, or in what each thread has for itself.
    """
    src, dst = boxes(op.src, op.dst)
    pairing = pair(op.src, op.dst)

    def step(there: Indices, here: Indices) -> Stmt:
        along = {axis: here[dim] for dim, axis in enumerate(pairing.dst_axes) if axis is not None}
        zero = as_expr(0)
        offsets = (zero if a is None else along.get(a, zero) for a in pairing.src_axes)
        at = tuple(
            offset if static_value(start) == 0 else binary(BinaryOp.ADD, as_expr(start), offset)
            for start, offset in zip(src.starts, offsets, strict=True)
        )
        return Store(dst.buffer, there, cast(Load(src.buffer, at), dst.buffer.dtype))

    nest, layout = over_region(dst, dst.extents, step, ctx, vector)
    return partition(nest, layout, ctx)


def by_each_thread(body: Stmt, ctx: SimtContext) -> Stmt:
    """Return what each thread does in full, with loops over its registers written out."""
    return unrolled(ctx.lower(body, replace(ctx, by_thread=True)))


def over_region(
    region: Region, extents: Sequence[Extent], step: Step, ctx: SimtContext, vector: int = 1
) -> tuple[Parallel, LoopLayout]:
    """Return the loop over the elements of a region, and who runs its iterations.

    Threads that hold an element of a register tile run its step. Where a part begins at a place
    known at run time only, they run the loop over all of the tile and leave out what is beside
    the part; likewise where that is less. Elements in memory go round the threads.

    `step` makes the statement for one element, given its indices in the buffer and in the
    region. A thread runs at most `vector` neighbours of a register tile at once.
    """
    points = tuple(ctx.fresh_var(f"i{axis}") for axis in range(len(extents)))
    starts = tuple(as_expr(start) for start in region.starts)
    layout = _over_elements(region, extents, ctx, vector)
    if layout is not None:
        there = tuple(binary(BinaryOp.ADD, s, p) for s, p in zip(starts, points, strict=True))
        return Parallel(points, tuple(as_expr(n) for n in extents), step(there, points)), layout
    here = tuple(binary(BinaryOp.SUB, p, s) for p, s in zip(points, starts, strict=True))
    body = If(_inside(here, extents), step(points, here), span=region.span)
    shape = tuple(as_expr(n) for n in region.buffer.shape)
    return Parallel(points, shape, body), loop_over(ctx.fragment_of(region.buffer))


def _over_elements(
    region: Region, extents: Sequence[Extent], ctx: SimtContext, vector: int
) -> LoopLayout | None:
    """Return the loop over a region alone; None if one over all of the tile must do, or is less.

    Holders that no formula tells look for their elements of a part one by one.
    """
    sizes = tuple(n for extent in extents if (n := static_value(extent)) is not None)
    if not region.buffer.scope.is_spread:
        return planned(sizes, ctx.threads)
    if any(static_value(place) is None for place in (*region.starts, *extents)):
        return None
    found: LoopLayout = ctx.places.layouts.loop_of_region(region, sizes, ctx.threads, vector)
    if found.searched and not region.is_whole:
        everything = loop_over(ctx.fragment_of(region.buffer))
        return None if everything.rounds < found.rounds else found
    return found


def _inside(indices: Indices, extents: Sequence[Extent]) -> Expr:
    found: Expr = const(True)
    for index, extent in zip(indices, extents, strict=True):
        found = binary(BinaryOp.AND, found, binary(BinaryOp.GE, index, 0))
        found = binary(BinaryOp.AND, found, binary(BinaryOp.LT, index, extent))
    return found


@dataclass(frozen=True, slots=True)
class Batch:
    """The elements of a tile with indices ``first <= i < first + count`` in one dimension."""

    dim: int
    first: int
    count: int

    def has(self, index: Expr) -> Expr:
        """Return whether `index` in the dimension is one of the batch."""
        last = binary(BinaryOp.LT, index, self.first + self.count)
        return binary(BinaryOp.AND, binary(BinaryOp.GE, index, self.first), last)

    def of(self, region: Region, dim: int) -> Region:
        """Return the elements of `region` that belong to the batch along its dimension `dim`."""
        starts, extents = list(region.starts), list(region.extents)
        starts[dim] = binary(BinaryOp.ADD, as_expr(starts[dim]), self.first)
        extents[dim] = self.count
        return Region(region.buffer, tuple(starts), tuple(extents), span=region.span)


def batches(
    shape: Sequence[int], nbytes: int, dims: Iterable[int], ctx: SimtContext
) -> list[Batch]:
    """Return the batches in which a tile passes through a block's shared memory.

    None where all of it fits beside the kernel's tiles, or where not even one index of the
    longest dimension does: the memory plan then says what is missing.

    Before   exchange 131072 bytes, of 65536
    After    exchange 65536 bytes; barrier; exchange 65536 bytes

    The tile takes `nbytes` there. It may be cut along `dims`, and is along the longest.
    """
    dim = max(dims, key=lambda d: shape[d], default=None)
    if dim is None or ctx.exchange_bytes is None or nbytes <= ctx.exchange_bytes:
        return []
    count = ctx.exchange_bytes * shape[dim] // nbytes
    if count < 1:
        return []
    return [Batch(dim, at, min(count, shape[dim] - at)) for at in range(0, shape[dim], count)]
