"""Whether two regions have elements in common."""

from __future__ import annotations

from tile_core.ir.buffer import Region, static_value
from tile_core.ir.expr import Extent
from tile_core.ir.structural_equality import same_value


def surely_overlap(one: Region, other: Region) -> bool:
    """Whether two regions have elements in common, whatever the values of variables.

    Regions of one buffer do if their ranges meet along every dimension; a buffer and a view of
    it do if both are taken whole.

    Examples
    --------
    Of ``S[0:64, :]`` and ``S[32:96, :]`` it is certain, of ``S[0:64, :]`` and ``S[64:128, :]`` or
    of ``S[k, :]`` and ``S[k + 1, :]`` it is not.
    """
    if one.buffer is not other.buffer:
        return one.buffer.storage is other.buffer.storage and one.is_whole and other.is_whole
    sides = zip(one.starts, one.extents, other.starts, other.extents, strict=True)
    return all(_meet(*side) for side in sides)


def _meet(first: Extent, length: Extent, second: Extent, other_length: Extent) -> bool:
    """Whether ``[first, first + length)`` and the range at `second` surely meet."""
    a, b = static_value(first), static_value(second)
    m, n = static_value(length), static_value(other_length)
    if a is not None and b is not None and m is not None and n is not None:
        return a < b + n and b < a + m
    return same_value(first, second)
