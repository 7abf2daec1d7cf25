"""`tile_nn.linear_w8a8`."""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_nn import checks


@tile.function
def linear_w8a8(
    x: Any, weight: Any, x_scale: Any, weight_scale: Any, bias: Any = None, *,
    out_dtype: str = "float32",
) -> Any:  # fmt: skip
    """Return the product of rows of bytes and a matrix of bytes, scaled: a quantised linear layer.

    Parameters
    ----------
    x
        ``(..., k)``, int8.
    weight
        ``(n, k)``, int8.
    x_scale
        ``(..., 1)``, floats: that of each row of `x`, as `quantize_int8` gives it.
    weight_scale
        ``(n,)``, or ``(n, 1)``, floats: that of each row of `weight`.
    bias
        ``(n,)``, floats; None: zeros.
    out_dtype
        ``"float16"``, ``"bfloat16"`` or ``"float32"``.

    Returns
    -------
    y
        ``(..., n)``: the sum in 32-bit integers, times both scales, plus the bias; rounded once.

    Notes
    -----
    Known elsewhere as ``int8_scaled_mm`` (SGLang), ``cutlass_scaled_mm`` (vLLM),
    ``int8_mm_dequant`` (bitsandbytes).
    """
    kernel = "linear_w8a8"
    checks.of_type(kernel, ("int8",), x=x, weight=weight)
    checks.floats(kernel, x_scale=x_scale, weight_scale=weight_scale, bias=bias)
    checks.one_of("tile_nn.linear_w8a8: out_dtype", out_dtype, ("float16", "bfloat16", "float32"))
    checks.ranked(kernel, 1, "(..., k)", x=x)
    checks.matrix(kernel, x, weight)
    rows = weight.shape[0]
    checks.of_shape(kernel, (*x.shape[:-1], 1), "(..., 1)", x_scale=x_scale)
    if weight_scale.ndim == 2:
        checks.of_shape(kernel, (rows, 1), "(n,) or (n, 1)", weight_scale=weight_scale)
        weight_scale = weight_scale[:, 0]
    checks.of_shape(kernel, (rows,), "(n,) or (n, 1)", weight_scale=weight_scale)
    checks.of_shape(kernel, (rows,), "(n,)", bias=bias)
    total = x.astype("int32") @ weight.astype("int32").T
    y = total.astype("float32") * x_scale * weight_scale
    return (y if bias is None else y + bias).astype(out_dtype)
