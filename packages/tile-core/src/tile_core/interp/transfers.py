"""Elements that move from one region to another, whoever moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tile_core.dtypes import DType
from tile_core.interp import atomics, regions
from tile_core.interp.execution_state import BlockState, Lanes
from tile_core.interp.values import Array, convert, decode, encode
from tile_core.ir.buffer import Region
from tile_core.ir.stmt import Leaf


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
    source, target, extents = regions.paired(src, dst, lanes, op)
    if dst.buffer.scope.is_global:
        regions.require_known(source, target.inside)
    values_known = regions.known(source)
    stored = regions.read_stored(source)
    stored = converted(stored, src.buffer.dtype, dst.buffer.dtype)
    if reduction is not None:
        regions.require_known(target)
        dtype = dst.buffer.dtype
        old = decode(regions.read_stored(target), dtype)
        new = decode(stored, dtype)
        stored = encode(atomics.COMBINE[reduction](old, new), dtype)
    for where in _in_homes(target, homes, dst, lanes):
        regions.write_stored(where, stored, values_known)
    return int(np.prod(extents)) * max(dst.buffer.dtype.bits, 8) // 8


def _in_homes(
    target: regions.Box, homes: Sequence[BlockState] | None, dst: Region, lanes: Lanes
) -> list[regions.Box]:
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
