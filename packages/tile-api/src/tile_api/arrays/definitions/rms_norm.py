"""`tile.nn.rms_norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def rms_norm(x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
    """Return rows divided by the root of their mean square, times a weight for each column."""
    normal = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return normal if weight is None else normal * weight
