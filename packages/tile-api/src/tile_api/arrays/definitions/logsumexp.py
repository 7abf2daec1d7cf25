"""`tile.nn.logsumexp`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def logsumexp(x: Any, *, axis: int = -1, keepdims: Any = False) -> Any:
    """Return the logarithm of the sum of exponentials along an axis."""
    return np.logaddexp.reduce(x, axis=axis, keepdims=keepdims)
