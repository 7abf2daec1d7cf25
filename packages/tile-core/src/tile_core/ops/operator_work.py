"""What one run of an operator computes, beside moving the elements it reads and writes."""

from __future__ import annotations

from tile_core.ir.buffer import Region
from tile_core.ir.expr import Extent
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """Work that is the same on every machine; the bytes follow from `reads` and `writes`.

    Parameters
    ----------
    product
        Extents M, N, K of a matrix product: ``2 M N K`` operations.
    operands
        Element type of its operands.
    elements
        Extents of a box, for each element of which there are so many
    operations, functions
        additions, comparisons and the like, and values of transcendental functions.
    touched
        The boxes that are read, and those that are written, where `reads` and `writes` name
        more or less: the head of a tile stands for the tile there.
    gathered
        Extents of a box of as many elements as are read of the sources, where no box of them is.
    """

    product: tuple[Extent, ...] = ()
    operands: str = ""
    elements: tuple[Extent, ...] = ()
    operations: float = 0.0
    functions: float = 0.0
    touched: tuple[tuple[Region, ...], tuple[Region, ...]] | None = None
    gathered: tuple[Extent, ...] = ()


NO_WORK = OperatorWork()
"""Of an operator that only moves elements, or only waits."""
