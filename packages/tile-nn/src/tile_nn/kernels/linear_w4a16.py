"""`tile_nn.linear_w4a16`."""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_nn import checks


@tile.function
def linear_w4a16(x: Any, weight: Any, scales: Any, zeros: Any = None, bias: Any = None) -> Any:
    """Return the product of rows and a matrix of 4-bit codes: a linear layer with small weights.

    Parameters
    ----------
    x
        ``(..., k)``, floats of any type.
    weight
        ``(n, k / 2)``, uint8: codes from 0 to 15, the one of the lower index in the lower bits.
    scales
        ``(n, groups)``, floats: neighbours along `k` share one, in groups of one size.
    zeros
        Like `scales`, uint8 or floats: the code of 0; None: 8.
    bias
        ``(n,)``, floats; None: zeros.

    Returns
    -------
    y
        ``(..., n)``, of the type of `x`: ``x @ ((code - zero) · scale).T + bias``; weights are
        widened in the kernel.

    Notes
    -----
    The layout is that of ONNX Runtime's ``MatMulNBits``, with bytes of all blocks of a row side by
    side. Known elsewhere as ``gptq_gemm``, ``awq_gemm``, ``moe_wna16_gemm`` (vLLM), each with an
    order of its own.
    """
    kernel = "linear_w4a16"
    checks.floats(kernel, x=x, scales=scales, bias=bias)
    checks.of_type(kernel, ("uint8",), weight=weight)
    checks.of_type(kernel, ("uint8", *checks.FLOATS), zeros=zeros)
    checks.ranked(kernel, 1, "(..., k)", x=x)
    checks.require(
        weight.ndim == 2 and 2 * weight.shape[1] == x.shape[-1], kernel,
        f"weight has shape {tuple(map(int, weight.shape))}, and rows of x {x.shape[-1]} elements",
        "weight is (n, k / 2), x is (..., k)",
    )  # fmt: skip
    rows, columns = weight.shape[0], x.shape[-1]
    checks.require(
        scales.ndim == 2 and scales.shape[0] == rows and scales.shape[1] >= 1
        and columns % scales.shape[1] == 0, kernel,
        f"scales have shape {tuple(map(int, scales.shape))}, and x rows of {columns} elements",
        "scales are (n, groups), groups of one size",
    )  # fmt: skip
    checks.of_shape(kernel, scales.shape, "that of scales", zeros=zeros)
    checks.of_shape(kernel, (rows,), "(n,)", bias=bias)
    wide = tile.nn.dequantize(weight, scales, 8 if zeros is None else zeros, bits=4)
    y = x @ wide.astype(x.dtype).T
    return (y if bias is None else y + bias).astype(x.dtype)
