"""`tile.nn.conv2d`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.function import function


@function
def conv2d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Return images, ``(batch, channels, height, width)``, each pixel from a window of pixels.

    Parameters
    ----------
    weight
        ``(results, channels / groups, height, width)``: the sum of a window is weighted by it.
    bias
        An element for each result.
    stride, padding, dilation
        Steps between windows, zeros around an image, steps within a window; a pair for height
        and width if they differ, `padding` a pair of pairs if its ends do.
    """
    (sy, sx), (dy, dx) = (p if isinstance(p, tuple) else (p, p) for p in (stride, dilation))
    pads = padding if isinstance(padding, tuple) else (padding, padding)
    x = np.pad(x, ((0, 0), (0, 0), *(p if isinstance(p, tuple) else (p, p) for p in pads)))
    size = [d * (n - 1) + 1 for d, n in zip((dy, dx), weight.shape[2:], strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, tuple(size), axis=(2, 3))
    windows = windows[:, :, ::sy, ::sx, ::dy, ::dx]
    windows = np.reshape(windows, (x.shape[0], groups, weight.shape[1], *windows.shape[2:]))
    results = weight.shape[0]
    weight = np.reshape(weight, (groups, -1, *weight.shape[1:]))
    made = np.einsum("ngchwij,gocij->ngohw", windows, weight)
    made = np.reshape(made, (x.shape[0], results, *made.shape[3:]))
    return made if bias is None else made + np.reshape(bias, (-1, 1, 1))
