"""Calls of the device header that copy boxes of tensors, and bytes side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.build_expr import as_expr, binary, cast
from tile_core.ir.cache_hints import hint
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, BinaryOp, Expr, Var
from tile_core.layout import row_major
from tile_core.layout.copy_engine_boxes import Boxes
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.region_pairing import pair
from tile_core.records import dataclass
from tile_core.simt.buffer_addresses import row_major_strides
from tile_core.simt.context import SimtContext
from tile_core.simt.lower_accesses import lower_expr, place_of
from tile_core.simt.program import TensorMap
from tile_core.simt.rules.mbarrier import barrier_address
from tile_core.simt.subbyte_access import storage_dtype


@dataclass(frozen=True, slots=True)
class BoxCopies:
    """The boxes that a copy is made of.

    `handle` stands for the map of the tensor; `places` has for each box its place in shared
    memory, and its coordinates in the tensor, innermost first.
    """

    handle: Var
    places: tuple[tuple[AddressOf, tuple[Expr, ...]], ...]

    def calls(self, op: BulkCopy, ctx: SimtContext) -> Iterator[Expr]:
        """Yield the orders to the copy engine, for this block or as many as `op` names."""
        for place, coordinates in self.places:
            yield _call(op, self.handle, place, coordinates, ctx)


def box_copies(op: BulkCopy, boxes: Boxes, ctx: SimtContext) -> BoxCopies:
    """Return the copies of `boxes` of the tile of `op`.

    Before   bulk_copy X[n, y, x, c] -> X_s[0:8, 0:8, 0:64], one box of 8 x 8 x 64
    After    X_map, in boxes of 64 x 8 x 8 x 1;  X_s and the coordinates c, x, y, n
    """
    axes, tensor = _axes(op), op.tensor.buffer
    box = [1] * tensor.rank
    if axes[-1] is None:
        raise InternalError("the columns of a bulk copy do not move", span=op.span)
    for dim, size in zip(axes, boxes.box, strict=True):
        if dim is not None:
            box[dim] = size
    handle = ctx.tensor_map(_map(tensor, tuple(reversed(box)), boxes.swizzle))
    return BoxCopies(handle, tuple(_places(op, boxes, axes, ctx)))


def _axes(op: BulkCopy) -> tuple[int | None, ...]:
    """Return for each dimension of the tile the dimension of the tensor that moves with it."""
    pairing = pair(op.src, op.dst)
    mine, theirs = (
        (pairing.dst_axes, pairing.src_axes) if op.is_load else (pairing.src_axes, pairing.dst_axes)
    )
    dims = {axis: dim for dim, axis in enumerate(theirs) if axis is not None}
    return tuple(None if axis is None else dims.get(axis) for axis in mine)


def _map(tensor: Buffer, box: tuple[int, ...], swizzle: int) -> TensorMap:
    dtype = storage_dtype(tensor.dtype, tensor.scope)
    nbytes = dtype.bits // 8
    strides = tensor.strides or row_major_strides(tensor.shape)
    return TensorMap(
        name=f"{tensor.storage.name}_map",
        tensor=tensor.storage,
        dtype=dtype,
        offset=as_expr(0),
        extents=tuple(as_expr(e) for e in reversed(tensor.shape)),
        strides=tuple(as_expr(s * nbytes) for s in reversed(strides[:-1])),
        box=box,
        swizzle=swizzle,
    )


def _places(
    op: BulkCopy, boxes: Boxes, axes: tuple[int | None, ...], ctx: SimtContext
) -> Iterator[tuple[AddressOf, tuple[Expr, ...]]]:
    """Yield for each box its place in shared memory and its coordinates, innermost first."""
    tile, tensor = op.tile, op.tensor
    starts = [_lowered(s, ctx) for s in tile.starts]
    origin = [_lowered(s, ctx) for s in tensor.starts]
    for index in _indices(boxes.parts):
        steps = [k * size for k, size in zip(index, boxes.box, strict=True)]
        here = [start + step for start, step in zip(starts, steps[:-2], strict=False)]
        here += starts[len(here) :]
        where = list(origin)
        for dim, step in zip(axes, steps, strict=True):
            if dim is not None and step:
                where[dim] = where[dim] + step
        row, column = (0, *index)[-2:]
        base = ctx.address(tile.buffer, *here, access="w" if op.is_load else "r")
        first = base.indices[0]
        if boxes.begins_inside:
            first = binary(BinaryOp.BITAND, first, -boxes.box[-1])
        moved = first + (row * boxes.row_step + column * boxes.column_step)
        yield (
            AddressOf(base.buffer, (moved,), base.access),
            tuple(cast(as_expr(c), "int32") for c in reversed(where)),
        )


def _indices(extents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for flat in range(math.prod(extents)):
        index = []
        for extent in reversed(extents):
            index.append(flat % extent)
            flat //= extent
        yield tuple(reversed(index))


def _lowered(start: Any, ctx: SimtContext) -> Any:
    known = static_value(start)
    return lower_expr(start, ctx) if known is None else known


def _call(
    op: BulkCopy, handle: Var, place: AddressOf, coordinates: tuple[Expr, ...], ctx: SimtContext
) -> Expr:
    mode = (len(coordinates), *hint(op.eviction_policy))
    if op.barrier is None:
        name = "tensor_store" if op.reduce is None else f"tensor_reduce_{op.reduce}"
        return device(name, *mode, handle, place, *coordinates)
    bar = barrier_address(op.barrier, ctx)
    if op.multicast is not None:
        mask = lower_expr(op.multicast, ctx)
        return device("tensor_load_multicast", *mode, place, handle, bar, mask, *coordinates)
    name = "tensor_load_pair" if op.tells_first else "tensor_load"
    return device(name, *mode, place, handle, bar, *coordinates)


def contiguous_copy_call(op: BulkCopy, ctx: SimtContext) -> Expr:
    """Return the one order that copies bytes side by side. PTX ISA, "cp.async.bulk".

    Before   bulk_copy x[bx*128] -> x_s[slot, 0:128], barrier full[slot]
    After    bulk_load(x_s + slot*128, x + bx*128, 512, full + slot)
    """
    tile, tensor = op.tile, op.tensor
    layout = ctx.layout_of(tile.buffer)
    if not layout.same_function(row_major(layout.shape)):
        raise InternalError("the rows of a bulk 1-D copy are not in order", span=op.span)
    nbytes = math.prod(extents_of(tile)) * storage_dtype(tile.buffer.dtype, tile.buffer.scope).bits
    accesses = ("r", "w") if op.is_load else ("w", "r")
    (flat, offset), access = place_of(tensor.buffer, _starts(tensor, ctx), ctx), accesses[0]
    there = AddressOf(flat, (offset,), access)
    here = ctx.address(tile.buffer, *_starts(tile, ctx), access=accesses[1])
    cache_hint = hint(op.eviction_policy)
    if op.barrier is not None:
        bar = barrier_address(op.barrier, ctx)
        return device("bulk_load", *cache_hint, here, there, nbytes // 8, bar)
    name = "bulk_store" if op.reduce is None else f"bulk_reduce_{op.reduce}"
    return device(name, *cache_hint, there, here, nbytes // 8)


def _starts(region: Region, ctx: SimtContext) -> tuple[Expr, ...]:
    return tuple(as_expr(_lowered(start, ctx)) for start in region.starts)


def extents_of(region: Region) -> tuple[int, ...]:
    """Return how much of a buffer is copied, along each dimension."""
    extents = region.static_extents
    if extents is None:
        raise InternalError("a bulk copy of unknown size", span=region.span)
    return extents
