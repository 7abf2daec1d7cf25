"""`tile.nn.erf`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import apply
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.function import function


@function
def erf(x: Any) -> Any:
    """Return the error function of each element, which NumPy does not have."""
    if isinstance(x, Array):
        return apply(UFUNCS["erf"], "exp", (x,))
    return np.vectorize(math.erf)(x).astype(np.exp(x).dtype)
