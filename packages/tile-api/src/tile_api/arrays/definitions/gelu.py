"""`tile.nn.gelu`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tile_api.arrays.definitions._choices import one_of
from tile_api.arrays.definitions.erf import erf
from tile_api.arrays.function import function


@function
def gelu(x: Any, *, approximate: str = "none") -> Any:
    """Return ``x`` times the normal distribution, or, `approximate` "tanh", nearly that."""
    one_of("tile.nn.gelu: approximate", approximate, "none", "tanh")
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))
