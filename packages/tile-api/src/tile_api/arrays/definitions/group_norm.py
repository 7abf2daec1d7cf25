"""`tile.nn.group_norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.definitions.layer_norm import layer_norm
from tile_api.arrays.function import function


@function
def group_norm(
    x: Any, groups: int, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> Any:
    """Return images, ``(batch, channels, ...)``, normalised in groups of channels.

    `weight` and `bias` have an element for each channel.
    """
    rows = np.reshape(x, (x.shape[0], groups, -1))
    normal = np.reshape(layer_norm(rows, eps=eps), x.shape)
    each = (-1, *[1] * (x.ndim - 2))
    scaled = normal if weight is None else normal * np.reshape(weight, each)
    return scaled if bias is None else scaled + np.reshape(bias, each)
