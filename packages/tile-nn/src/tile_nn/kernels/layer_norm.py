"""`tile_nn.layer_norm`."""

from __future__ import annotations

from typing import Any

import tile_api as tile
from tile_nn import checks


@tile.function
def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, residual: Any = None, *, eps: float = 1e-5
) -> Any:
    """Return rows of mean 0 and variance 1, times a weight and plus a bias for each column.

    Parameters
    ----------
    x
        ``(..., d)``, floats of any type. Statistics are in float32, of float64 in float64; the
        variance is that of differences to the mean.
    weight, bias
        ``(d,)``, floats; None: ones, zeros.
    residual
        Like `x`: the norm is that of ``x + residual``, rounded to the type of `x`. That sum is
        returned, too, and is the next layer's residual.
    eps
        Added to the variance, inside of the root.

    Returns
    -------
    y, or (y, x + residual)
        Of the shape and type of `x`, rounded once.

    Notes
    -----
    Known elsewhere as ``layernorm`` (FlashInfer), ``liger_layer_norm``, ``SkipLayerNormalization``
    (ONNX Runtime). J. L. Ba, J. R. Kiros, G. E. Hinton, *Layer normalization*, 2016.
    """
    checks.floats("layer_norm", x=x, weight=weight, bias=bias, residual=residual)
    checks.ranked("layer_norm", 1, "(..., d)", x=x)
    checks.of_shape("layer_norm", x.shape[-1:], "(d,)", weight=weight, bias=bias)
    checks.of_shape("layer_norm", x.shape, "that of x", residual=residual)
    dtype = x.dtype
    if residual is not None:
        x = residual = (x + residual).astype(dtype)
    y = tile.nn.layer_norm(x, weight, bias, eps=eps).astype(dtype)
    return y if residual is None else (y, residual)
