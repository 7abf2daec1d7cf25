"""`tile.nn.log_softmax`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def log_softmax(x: Any, *, axis: int = -1) -> Any:
    """Return the logarithm of the softmax along an axis."""
    z = x - np.max(x, axis=axis, keepdims=True)
    return z - np.log(np.sum(np.exp(z), axis=axis, keepdims=True))
