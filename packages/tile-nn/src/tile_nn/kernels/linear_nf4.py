"""`tile_nn.linear_nf4`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks

NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
)  # fmt: skip
"""What the codes from 0 to 15 mean: quantiles of the normal distribution."""


@tile.function
def linear_nf4(x: Any, weight: Any, absmax: Any, bias: Any = None) -> Any:
    """Return the product of rows and a matrix of normal floats of 4 bits: QLoRA's linear layer.

    Parameters
    ----------
    x
        ``(..., k)``, floats of any type.
    weight
        ``(n, k / 2)``, uint8: codes from 0 to 15, the one of the lower index in the upper bits.
    absmax
        ``(n, groups)``, floats: neighbours along `k` share a largest magnitude, in groups of one
        size: 64 in bitsandbytes.
    bias
        ``(n,)``, floats; None: zeros.

    Returns
    -------
    y
        ``(..., n)``, of the type of `x`: ``x @ (NF4[code] · absmax).T + bias``; weights are
        widened in the kernel, to the type of `x`.

    Notes
    -----
    bitsandbytes packs ``(n · k / 2, 1)``: ``weight.reshape(n, k // 2)`` and
    ``absmax.reshape(n, -1)`` where `k` is a multiple of its blocks; absmax that are quantised
    themselves are widened before. Known elsewhere as ``gemv_4bit``, ``matmul_4bit``. T. Dettmers et
    al., *QLoRA*, 2023.
    """
    kernel = "linear_nf4"
    checks.floats(kernel, x=x, absmax=absmax, bias=bias)
    checks.of_type(kernel, ("uint8",), weight=weight)
    checks.ranked(kernel, 1, "(..., k)", x=x)
    rows, columns = weight.shape[0], x.shape[-1]
    checks.require(
        weight.ndim == 2 and 2 * weight.shape[1] == columns, kernel,
        f"weight has shape {tuple(map(int, weight.shape))}, and rows of x {columns} elements",
        "weight is (n, k / 2), x is (..., k)",
    )  # fmt: skip
    checks.require(
        absmax.ndim == 2 and absmax.shape[0] == rows and absmax.shape[1] >= 1
        and columns % absmax.shape[1] == 0, kernel,
        f"absmax has shape {tuple(map(int, absmax.shape))}, and x rows of {columns} elements",
        "absmax is (n, groups), groups of one size",
    )  # fmt: skip
    checks.of_shape(kernel, (rows,), "(n,)", bias=bias)
    codes = np.reshape(np.stack([weight >> 4, weight & 15], axis=-1), (rows, columns))
    table = np.array(NF4, "float32")
    scale = np.repeat(absmax, columns // absmax.shape[1], axis=-1)
    wide = (np.take(table, codes) * scale).astype(x.dtype)
    y = x @ wide.T
    return (y if bias is None else y + bias).astype(x.dtype)
