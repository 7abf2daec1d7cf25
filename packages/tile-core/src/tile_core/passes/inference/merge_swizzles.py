"""One swizzle for two operators that read a tile."""

from __future__ import annotations

from tile_core.errors import LayoutError
from tile_core.layout import Layout, Swizzle, swizzled


def merged_swizzle(one: Layout, other: Layout, bits: int) -> Layout | None:
    """Return the narrower of two swizzled layouts of a tile; None if one is something else.

    Swizzles keep 16 bytes together: whoever reads chunks of that size can read any of them,
    with at most a few more turns of the memory.
    """
    first, second = _swizzle_of(one, bits), _swizzle_of(other, bits)
    if one.shape != other.shape or first is None or second is None:
        return None
    return one if first.value <= second.value else other


def _swizzle_of(layout: Layout, bits: int) -> Swizzle | None:
    for swizzle in Swizzle:
        try:
            if swizzled(layout.shape, bits, swizzle).first_difference(layout) is None:
                return swizzle
        except LayoutError:
            continue
    return None
