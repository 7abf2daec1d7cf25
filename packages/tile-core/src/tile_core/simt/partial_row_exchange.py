"""How the threads that share a row of a fragment bring their parts together."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tile_core.layout import Fragment
from tile_core.layout.index_tables import Table
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """The threads that hold parts of one row, as lanes of warps and as warps.

    Every row has ``2 ** len(lane_masks)`` lanes in each of `warp_count` warps.

    Parameters
    ----------
    lane_masks
        Bits of the lane in which the lanes of a row differ, lowest first: exchanging across
        each of them by exclusive or visits all lanes.
    warp_count, warp_step
        How many warps share a row; the part of warp `w` is ``w // warp_step % warp_count``.
    """

    lane_masks: tuple[int, ...]
    warp_count: int = 1
    warp_step: int = 1

    @property
    def lane_bits(self) -> int:
        """All bits in which lanes of a row differ."""
        return sum(self.lane_masks)


@lru_cache(maxsize=64)
def exchange_along(fragment: Fragment, dim: int, warp_size: int) -> Exchange | None:
    """Return how rows along `dim` are spread over threads, for one replica of the fragment.

    None if lanes of a row are no cube of bits, or warps no regular step: such rows are
    brought together through memory, element by element.
    """
    rows = _rows(fragment.thread_table(), dim)
    lanes, warps = rows % warp_size, rows // warp_size
    masks = _cube(lanes)
    parts = _steps(warps)
    if masks is None or parts is None:
        return None
    found = Exchange(masks, *parts)
    per_row = (1 << len(masks)) * found.warp_count
    if (_numbers_of_different(rows) != per_row).any():
        return None
    return found


def _rows(threads: Table, dim: int) -> Table:
    """Return the threads of each row, one line per row and replica."""
    moved = np.moveaxis(threads, dim, -1)  # (..., replica, element of the row)
    return moved.reshape(-1, moved.shape[-1])


def _cube(lanes: Table) -> tuple[int, ...] | None:
    """Return the bits that vary within every line, if each line has all combinations of them."""
    varying = np.bitwise_or.reduce(lanes ^ lanes[:, :1], axis=1)
    bits = int(varying[0])
    if (varying != bits).any():
        return None
    masks = tuple(1 << k for k in range(bits.bit_length()) if bits >> k & 1)
    full = bool((_numbers_of_different(lanes) == 1 << len(masks)).all())
    return masks if full else None


def _numbers_of_different(lines: Table) -> Table:
    """Return how many different numbers each line has."""
    ordered = np.sort(lines, axis=1)
    found: Table = 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1)
    return found


def _steps(warps: Table) -> tuple[int, int] | None:
    """Return how many warps share a line and how far apart they are."""
    first = np.unique(warps[0])
    count = int(first.size)
    if count == 1:
        return (1, 1) if (warps == warps[:, :1]).all() else None
    step = int(first[1] - first[0])
    for line in warps:
        found = np.unique(line)
        if found.size != count or not np.array_equal(found // step % count, np.arange(count)):
            return None
    return count, step
