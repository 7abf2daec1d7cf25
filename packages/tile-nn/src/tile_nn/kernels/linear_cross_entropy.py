"""`tile_nn.linear_cross_entropy`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks
from tile_nn.kernels.cross_entropy import REDUCTIONS, checked, reduced, smoothed


@tile.function
def linear_cross_entropy(
    x: Any, weight: Any, target: Any, bias: Any = None, *, ignore_index: int = -100,
    label_smoothing: float = 0.0, z_loss: float = 0.0, softcap: float = 0.0,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return the cross entropy of ``x @ weight.T + bias``, a model's last product.

    Parameters
    ----------
    x
        ``(..., d)``, floats of any type.
    weight
        ``(classes, d)``, floats of any type.
    target
        ``(...)``, integers: the class of each row.
    bias
        ``(classes,)``, floats; None: zeros.
    ignore_index, label_smoothing, z_loss, softcap, reduction
        As for `cross_entropy`.

    Returns
    -------
    loss
        ``()``, or ``(...)`` if nothing is reduced; float32, of float64 float64.

    Notes
    -----
    Logits are not rounded to the type of `x`. Whether they are stored is a matter of cost:
    ``linear_cross_entropy.explain(...)`` tells; of a large vocabulary gradients compute them again.
    Known elsewhere as ``torch.nn.functional.linear_cross_entropy``,
    ``liger_fused_linear_cross_entropy``. E. Wijmans et al., *Cut your losses in large-vocabulary
    language models*, 2024.
    """
    kernel = "linear_cross_entropy"
    checks.floats(kernel, x=x, weight=weight, bias=bias)
    checks.integers(kernel, target=target)
    checks.ranked(kernel, 1, "(..., d)", x=x)
    checks.matrix(kernel, x, weight)
    checks.of_shape(kernel, weight.shape[:1], "(classes,)", bias=bias)
    checks.of_shape(kernel, x.shape[:-1], "that of x without d", target=target)
    checks.one_of("tile_nn.linear_cross_entropy: reduction", reduction, REDUCTIONS)
    at = checked(target, ignore_index, weight.shape[0])
    logits = x @ weight.T
    hit = np.sum(x * weight[at], axis=-1)
    if bias is not None:
        logits, hit = logits + bias, hit + bias[at]
    if softcap:
        logits, hit = (softcap * np.tanh(z / softcap) for z in (logits, hit))
    mean = np.mean(logits, axis=-1) if label_smoothing else 0.0
    lse = np.logaddexp.reduce(logits, axis=-1)
    loss = smoothed(lse, hit, mean, label_smoothing, z_loss)
    loss = loss.astype("float64" if x.dtype == "float64" else "float32")
    return reduced(loss, target != ignore_index, reduction)
