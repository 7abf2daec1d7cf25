"""What one access of a warp to memory costs: banks that meet, and sectors that are fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tile_core.arith.evaluate_arrays import value_of
from tile_core.ir.expr import Expr, Extent, Var

SECTOR = 32
"""Bytes that a cache fetches at least."""

BANK = 4
"""Bytes of a bank of shared memory."""


def lane_offsets(
    index: Extent, lanes: Mapping[Var, Any], others: Mapping[Var, Any], names: Mapping[Var, Expr]
) -> np.ndarray[Any, Any]:
    """Return an index for each lane of a warp; loops are in their first iteration.

    Raises
    ------
    Unknown
        If it depends on data.
    """
    values = {**others, **lanes}
    found = np.asarray(value_of(index, values, names, loads=0))
    count = max(np.size(v) for v in lanes.values())
    return np.broadcast_to(found, (count,)).astype(np.int64)


def shared_cycles(offsets: np.ndarray[Any, Any], nbytes: int, banks: int = 32) -> int:
    """Return how many cycles of shared memory an access of a warp takes.

    Parameters
    ----------
    offsets
        Byte of each lane.
    nbytes
        Bytes that each lane reads or writes: 1 to 16.

    Notes
    -----
    Accesses of 8 bytes are served for half of 32 lanes at a time, those of 16 for a quarter;
    lanes of one group that need different words of one bank wait for each other.

    Examples
    --------
    >>> import numpy as np
    >>> shared_cycles(np.arange(32) * 4, 4), shared_cycles(np.arange(32) * 128, 4)
    (1, 32)
    >>> shared_cycles(np.arange(32) * 16, 16), shared_cycles(np.arange(32) * 128, 16)
    (4, 32)
    """
    width = max(BANK, nbytes)
    group = max(1, banks * BANK // width)
    total = 0
    for first in range(0, len(offsets), group):
        words = offsets[first : first + group, None] // BANK + np.arange(width // BANK)
        distinct = np.unique(words)
        total += int(np.bincount(distinct % banks).max()) if distinct.size else 0
    return total


def sectors(offsets: np.ndarray[Any, Any], nbytes: int) -> int:
    """Return how many sectors of global memory an access of a warp touches.

    Examples
    --------
    >>> import numpy as np
    >>> sectors(np.arange(32) * 4, 4), sectors(np.arange(32) * 1024, 4)
    (4, 32)
    """
    first, last = offsets // SECTOR, (offsets + max(1, nbytes) - 1) // SECTOR
    return int(np.unique(np.concatenate([first, last])).size)
