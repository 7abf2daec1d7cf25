"""Arrays of 64 lanes, and the masks that stand for them in scalar registers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of NumPy; its type would say nothing of the many views that instructions take."""

LANES = 64
ALL = (1 << LANES) - 1


def mask_of(bits: int) -> Array:
    """Return 64 booleans, lane 0 first.

    Examples
    --------
    >>> mask_of(5)[:4].tolist()
    [True, False, True, False]
    """
    raw = np.frombuffer(bits.to_bytes(8, "little"), np.uint8)
    return np.unpackbits(raw, bitorder="little").view(np.bool_)


def bits_of(mask: Array) -> int:
    """Return 64 booleans as one number, lane 0 in bit 0."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
