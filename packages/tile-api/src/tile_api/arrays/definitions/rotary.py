"""`tile.nn.rotary`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def rotary(x: Any, cos: Any, sin: Any, *, interleaved: bool = False) -> Any:
    """Return rows whose pairs of elements are turned by angles.

    An element of the first half and one of the second are a pair; if `interleaved`, neighbours.
    `cos` and `sin` have an element for each pair.
    """
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        return np.reshape(np.stack(turned, axis=-1), x.shape)
    return np.concatenate(turned, axis=-1)
