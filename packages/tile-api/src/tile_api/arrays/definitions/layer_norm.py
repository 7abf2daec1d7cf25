"""`tile.nn.layer_norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    """Return rows of mean 0 and variance 1, times a weight and plus a bias for each column."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    normal = centred / np.sqrt(np.var(x, axis=-1, keepdims=True) + eps)
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias
