"""`tile.nn.conv1d`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.definitions.conv2d import conv2d
from tile_api.arrays.function import function


@function
def conv1d(
    x: Any, weight: Any, bias: Any = None, *, stride: int = 1, padding: Any = 0,
    dilation: int = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Return rows, ``(batch, channels, length)``, each element from a window of elements.

    Parameters
    ----------
    weight
        ``(results, channels / groups, length)``: the sum of a window is weighted by it.
    bias
        An element for each result.
    stride, padding, dilation
        Steps between windows, zeros at both ends, steps within a window; `padding` may be a
        pair: ``(length - 1, 0)`` lets no window see what comes later.
    """
    made = conv2d(
        np.expand_dims(x, 2), np.expand_dims(weight, 2), bias, stride=(1, stride),
        padding=(0, padding), dilation=(1, dilation), groups=groups,
    )  # fmt: skip
    return np.squeeze(made, 2)
