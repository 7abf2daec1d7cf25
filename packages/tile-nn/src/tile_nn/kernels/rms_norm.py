"""`tile_nn.rms_norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks


@tile.function
def rms_norm(
    x: Any, weight: Any = None, residual: Any = None, *, eps: float = 1e-6, offset: float = 0.0,
    casting_mode: str = "llama",
) -> Any:  # fmt: skip
    """Return rows divided by the root of their mean square, times a weight for each column.

    Parameters
    ----------
    x
        ``(..., d)``, floats of any type. Statistics are in float32, of float64 in float64.
    weight
        ``(d,)``, floats; None: ones.
    residual
        Like `x`: the norm is that of ``x + residual``, rounded to the type of `x`. That sum is
        returned, too, and is the next layer's residual.
    eps
        Added to the mean square, inside of the root.
    offset
        Added to `weight`. Gemma's weights are stored less 1: ``offset=1.0``.
    casting_mode
        What 16-bit results are rounded from. ``"llama"``: a row is rounded to the type of `x`
        before it is multiplied by `weight`; the result has the type of that product. ``"gemma"``:
        all is in float32, rounded once, to the type of `x`, as in ``torch.nn.functional.rms_norm``.

    Returns
    -------
    y, or (y, x + residual)
        Of the shape of `x`.

    Notes
    -----
    ``y = x · (mean(x²) + eps)^-½ · (weight + offset)``. Known elsewhere as ``rmsnorm`` and
    ``fused_add_rmsnorm`` (FlashInfer, where the sum is normalised before it is rounded),
    ``gemma_rmsnorm``, ``fused_add_rms_norm`` (vLLM), ``liger_rms_norm``,
    ``SimplifiedLayerNormalization`` (ONNX Runtime). B. Zhang, R. Sennrich, *Root mean square layer
    normalization*, 2019.
    """
    checks.floats("rms_norm", x=x, weight=weight, residual=residual)
    checks.one_of("tile_nn.rms_norm: casting_mode", casting_mode, ("llama", "gemma"))
    checks.ranked("rms_norm", 1, "(..., d)", x=x)
    checks.of_shape("rms_norm", x.shape[-1:], "(d,)", weight=weight)
    checks.of_shape("rms_norm", x.shape, "that of x", residual=residual)
    dtype = x.dtype
    if residual is not None:
        x = residual = (x + residual).astype(dtype)
    y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    if casting_mode == "llama":
        y = y.astype(dtype)
    if weight is not None:
        y = y * (weight + offset if offset else weight)
    if casting_mode == "gemma":
        y = y.astype(dtype)
    return y if residual is None else (y, residual)
