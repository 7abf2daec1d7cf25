"""Accumulators and operands that are parts of a fragment: some of the registers of each thread."""

from __future__ import annotations

from tile_core.ir.buffer import Region, static_value
from tile_core.records import dataclass

COLUMNS = 8
"""Sums of so many columns are registers that follow each other."""


@dataclass(frozen=True, slots=True)
class Part:
    """Neighbours along one dimension of a fragment, all along the other one.

    Parameters
    ----------
    first, extent
        Where the part begins, and how far it goes.
    all
        How far the fragment goes.
    """

    first: int
    extent: int
    all: int

    @property
    def is_whole(self) -> bool:
        """Whether the part is all of the fragment."""
        return self.extent == self.all

    def is_made_of(self, step: int) -> bool:
        """Whether the part, and what is before and behind it, are whole steps."""
        return self.first % step == 0 and self.extent % step == 0 and self.all % step == 0


def part_of(region: Region, *, along: int = -1) -> Part | None:
    """Return which part of a fragment a region is.

    Parameters
    ----------
    along
        The dimension along which it may be a part: the last, or the one before.

    Returns
    -------
    None if it is a part along the other one too, or its place is not known.
    """
    shape, extents = region.buffer.static_shape, region.static_extents
    first = static_value(region.starts[along])
    other = -3 - along
    if shape is None or extents is None or first is None or shape[other] != extents[other]:
        return None
    return Part(first, extents[along], shape[along])
