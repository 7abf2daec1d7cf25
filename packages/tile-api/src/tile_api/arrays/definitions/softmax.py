"""`tile.nn.softmax`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def softmax(x: Any, *, axis: int = -1) -> Any:
    """Return exponentials along an axis, divided by their sum."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
