"""`tile.nn.silu`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def silu(x: Any) -> Any:
    """Return ``x`` times its logistic function."""
    return x / (1 + np.exp(-x))
