"""Whole regions, read, written and moved as arrays: what tile operators are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tile_core.dtypes import DType
from tile_core.errors import OutOfBounds
from tile_core.interp import access, atomics
from tile_core.interp.access import Site
from tile_core.interp.execution_state import BlockState, Lanes, declared
from tile_core.interp.expressions import evaluate
from tile_core.interp.values import Array, convert, decode, encode
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Extent
from tile_core.ir.node import Node
from tile_core.ir.stmt import Leaf
from tile_core.ops.region_pairing import pair


@dataclass(slots=True, eq=False)
class Box:
    """The elements of a buffer that an operator's iteration space meets."""

    at: Site
    offsets: Array  # int64[extents]: element offsets; 0 where the element is outside
    inside: Array | None  # bool[extents]: which elements exist; None if all do


def number(extent: Extent, lanes: Lanes) -> int:
    """Return the value of a start or extent."""
    if isinstance(extent, int):
        return extent
    return int(lanes.agreed(evaluate(extent, lanes), "a bound of a region", extent.span))


def numbers(extents: tuple[Extent, ...], lanes: Lanes) -> tuple[int, ...]:
    """Return the values of starts or extents."""
    return tuple(number(e, lanes) for e in extents)


def box(
    region: Region,
    lanes: Lanes,
    node: Node,
    axes: tuple[int | None, ...] | None = None,
    extents: tuple[int, ...] | None = None,
) -> Box:
    """Locate the elements of `region`.

    `extents` are those of the iteration space, by default the region's own; `axes` says which of
    its axes moves along each dimension of the region (None: the dimension stays at its start).

    Raises `OutOfBounds` if an element lies outside a buffer that is not global.
    """
    if extents is None:
        extents = numbers(region.extents, lanes)
    if axes is None:
        axes = tuple(range(len(extents)))
    at = Site.of(lanes, region.buffer, node)
    place = at.place
    start = place.base if isinstance(place.base, int) else int(place.base[0])
    offsets = np.full((1,) * len(extents), start, np.int64)
    inside: Array | None = None
    for dim, (axis, first) in enumerate(zip(axes, numbers(region.starts, lanes), strict=True)):
        length = 1 if axis is None else extents[axis]
        index = first + np.arange(length, dtype=np.int64)
        shape = [1] * len(extents)
        if axis is not None:
            shape[axis] = length
        fits = (index >= 0) & (index < place.shape[dim])
        if not fits.all():
            if not place.guarded:
                raise _outside(at, dim, int(index[~fits][0]))
            inside = fits.reshape(shape) if inside is None else inside & fits.reshape(shape)
        offsets = offsets + (index * place.strides[dim]).reshape(shape)
    offsets = np.broadcast_to(offsets, extents)
    if inside is not None:
        inside = np.broadcast_to(inside, extents)
        offsets = np.where(inside, offsets, 0)
    return Box(at, offsets, inside)


def paired(src: Region, dst: Region, lanes: Lanes, op: Leaf) -> tuple[Box, Box, tuple[int, ...]]:
    """Locate the elements of both sides of a transfer; return its iteration space, too."""
    pairing = pair(src, dst)
    extents = numbers(pairing.extents, lanes)
    source = box(src, lanes, op, pairing.src_axes, extents)
    return source, box(dst, lanes, op, pairing.dst_axes, extents), extents


def _outside(at: Site, dim: int, index: int) -> OutOfBounds:
    return OutOfBounds(
        f"index {index} leaves dimension {dim} of {at.buffer.name}"
        f"[{', '.join(map(str, at.place.shape))}]",
        span=at.span,
        notes=declared(at.buffer),
        hint="only global tensors may be accessed beyond their bounds",
    )


def known(where: Box) -> Array | None:
    """Return which elements hold a value; safe values count. None means all."""
    written = where.at.storage.is_written(where.offsets, where.at.dtype)
    if written is None or written.all():
        return None
    result = written if where.inside is None else written | ~where.inside
    return None if result.all() else result


def require_known(where: Box, mask: Array | None = None) -> None:
    """Raise `UninitialisedRead` unless all elements (of `mask`) hold values."""
    values = known(where)
    if values is None or not where.at.lanes.machine.options.check_uninitialised:
        return
    missing = ~values if mask is None else ~values & mask
    if missing.any():
        access.uninitialised(where.at, where.offsets[missing])


def read_stored(where: Box) -> Array:
    """Return the elements in stored form, safe values included; the caller checks `known`."""
    at, active = where.at, where.inside
    flat_active = None if active is None else active.ravel()
    access.watch(at, where.offsets.ravel(), flat_active, "read")
    stored = at.storage.get(where.offsets, at.dtype)
    if active is None:
        return stored
    safe = encode(access.safe_value(at.lanes, at.buffer), at.dtype)
    return np.where(active, stored, safe[0])


def read(region: Region, lanes: Lanes, node: Node) -> Array:
    """Return the carried values of a region, all of which must have been written."""
    where = box(region, lanes, node)
    require_known(where)
    return decode(read_stored(where), region.buffer.dtype)


def write_stored(where: Box, stored: Array, values_known: Array | None = None) -> None:
    """Write elements in stored form; those outside are skipped.

    `values_known` tells which of them hold a value: copying undefined contents is no error
    by itself, but leaves the destination undefined.
    """
    stored = np.broadcast_to(stored, where.offsets.shape)
    if where.inside is None:
        offsets, flat, keep = where.offsets.ravel(), stored.ravel(), None
    else:
        offsets, flat, keep = where.offsets[where.inside], stored[where.inside], where.inside
    access.write_elements(where.at, offsets, flat, None)
    if values_known is not None:
        marks = values_known.ravel() if keep is None else values_known[keep]
        where.at.storage.mark(offsets, where.at.dtype, marks)


def moved(
    src: Region,
    dst: Region,
    lanes: Lanes,
    op: Leaf,
    homes: Sequence[BlockState] | None = None,
    reduction: str | None = None,
) -> int:
    """Copy `src` to `dst` and return how many bytes of `dst` that was, elements outside too.

    Equal dtypes keep their bits, and undefined contents stay undefined.
    `dst` is in the memory of the blocks `homes`, by default that of these lanes. A `reduction`
    says how its elements change instead of being replaced: "add", "min" or "max".
    """
    source, target, extents = paired(src, dst, lanes, op)
    if dst.buffer.scope.is_global:
        require_known(source, target.inside)
    values_known = known(source)
    stored = read_stored(source)
    stored = converted(stored, src.buffer.dtype, dst.buffer.dtype)
    if reduction is not None:
        require_known(target)
        dtype = dst.buffer.dtype
        old = decode(read_stored(target), dtype)
        new = decode(stored, dtype)
        stored = encode(atomics.COMBINE[reduction](old, new), dtype)
    for where in _in_homes(target, homes, dst, lanes):
        write_stored(where, stored, values_known)
    return int(np.prod(extents)) * max(dst.buffer.dtype.bits, 8) // 8


def _in_homes(
    target: Box, homes: Sequence[BlockState] | None, dst: Region, lanes: Lanes
) -> list[Box]:
    if homes is None:
        return [target]
    made = []
    for home in homes:
        storage = home.memory.get(dst.buffer.storage)
        if storage is None:
            storage = lanes.scratch(dst.buffer.storage)
            storage.generation = 1
            home.memory[dst.buffer.storage] = storage
        place = replace(target.at.place, storage=storage)
        made.append(replace(target, at=replace(target.at, place=place)))
    return made


def converted(stored: Array, source: DType, target: DType) -> Array:
    """Return elements in the stored form of another type."""
    if source == target:
        return stored
    return encode(convert(decode(stored, source), source, target), target)
