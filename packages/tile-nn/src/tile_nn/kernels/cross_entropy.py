"""`tile_nn.cross_entropy`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks

REDUCTIONS = ("mean", "sum", "none")


@tile.function
def cross_entropy(
    logits: Any, target: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0,
    z_loss: float = 0.0, softcap: float = 0.0, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Return minus the logarithm of the softmax of rows, at the class that each row belongs to.

    Parameters
    ----------
    logits
        ``(..., classes)``, floats of any type.
    target
        ``(...)``, integers: the class of each row. One that is neither a class nor `ignore_index`
        is an error of the kernel: TL6009.
    ignore_index
        Rows with this target have loss 0 and gradient 0, and are not counted.
    label_smoothing
        The part of the target that is spread over all classes evenly.
    z_loss
        Weight of the square of the logarithm of the sum of exponentials, which is added.
    softcap
        ``softcap · tanh(logits / softcap)`` stands for the logits, unless it is 0.
    reduction
        ``"mean"``: over the rows that are counted, NaN if there is none; ``"sum"``; ``"none"``.

    Returns
    -------
    loss
        ``()``, or ``(...)`` if nothing is reduced; float32, of float64 float64.

    Notes
    -----
    ``(1 - ε) · (lse - x_target) + ε · (lse - mean x) + z_loss · lse²``. Known elsewhere as
    ``torch.nn.functional.cross_entropy``, ``liger_cross_entropy`` (`z_loss` is its
    ``lse_square_scale``). Without logits in memory there is `linear_cross_entropy`.
    """
    kernel = "cross_entropy"
    checks.floats(kernel, logits=logits)
    checks.integers(kernel, target=target)
    checks.ranked(kernel, 1, "(..., classes)", logits=logits)
    checks.of_shape(kernel, logits.shape[:-1], "that of logits without classes", target=target)
    checks.one_of("tile_nn.cross_entropy: reduction", reduction, REDUCTIONS)
    x = logits.astype("float64" if logits.dtype == "float64" else "float32")
    if softcap:
        x = softcap * np.tanh(x / softcap)
    at = checked(target, ignore_index, x.shape[-1])
    hit = np.take_along_axis(x, np.expand_dims(at, -1), axis=-1)[..., 0]
    mean = np.mean(x, axis=-1) if label_smoothing else 0.0
    lse = np.logaddexp.reduce(x, axis=-1)
    loss = smoothed(lse, hit, mean, label_smoothing, z_loss)
    return reduced(loss, target != ignore_index, reduction)


def checked(target: Any, ignore_index: int, classes: Any) -> Any:
    """Return targets as indices: those that are no classes are outside of the array."""
    return np.where(target == ignore_index, 0, np.where(target < 0, classes, target))


def smoothed(lse: Any, hit: Any, mean: Any, label_smoothing: float, z_loss: float) -> Any:
    """Return the losses of rows."""
    loss = lse - hit if not label_smoothing else lse - (1 - label_smoothing) * hit
    if label_smoothing:
        loss = loss - label_smoothing * mean
    return loss + z_loss * lse * lse if z_loss else loss


def reduced(loss: Any, counts: Any, reduction: str) -> Any:
    """Return losses, their sum, or their mean; those that do not count are 0."""
    loss = np.where(counts, loss, 0)
    if reduction == "none":
        return loss
    total = np.sum(loss)
    return total if reduction == "sum" else total / np.sum(counts.astype(loss.dtype))
