"""`tile_nn.adamw`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tile_api as tile
from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendTypeError
from tile_nn import checks


@tile.function
def adamw(
    param: Any, grad: Any, exp_avg: Any, exp_avg_sq: Any, step: Any, lr: Any, *,
    beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, weight_decay: float = 1e-2,
) -> Any:  # fmt: skip
    """Return parameters after a step of Adam with decoupled weight decay, and its new averages.

    Parameters
    ----------
    param, grad, exp_avg, exp_avg_sq
        Of one shape, floats of any type: parameters, gradients, the running means of gradients and
        of their squares. Computed in float32, of float64 in float64; each is rounded once.
    step
        An array of one number, of shape ``()``: 1 in the first step.
    lr
        An array of one number, of shape ``()``: the rate of learning.
    beta1, beta2, eps, weight_decay
        Numbers that are parts of the kernel.

    Returns
    -------
    param, exp_avg, exp_avg_sq
        The new ones, of the types of the old ones.

    Notes
    -----
    ``p ← p · (1 - lr · wd) - lr / (1 - β₁ᵗ) · m / (√(v / (1 - β₂ᵗ)) + ε)``. Known elsewhere as
    ``torch.optim.AdamW(fused=True)``. I. Loshchilov, F. Hutter, *Decoupled weight decay
    regularization*, 2019.
    """
    for name, given in (("step", step), ("lr", lr)):
        if not hasattr(given, "dtype"):
            raise FrontendTypeError(
                f"tile_nn.adamw: {name} is {given!r}: each number would be another kernel",
                span=calling_span(),
                hint=f"pass an array of shape (): np.asarray({name}), torch.tensor({name})",
            )
    checks.floats("adamw", param=param, grad=grad, exp_avg=exp_avg, exp_avg_sq=exp_avg_sq, lr=lr)
    state = {"grad": grad, "exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq}
    checks.of_shape("adamw", param.shape, "that of param", **state)
    checks.of_shape("adamw", (), "()", step=step, lr=lr)
    step = step.astype("float64" if param.dtype == "float64" else "float32")
    first, second = (-np.expm1(step * math.log(beta)) for beta in (beta1, beta2))
    m = beta1 * exp_avg + (1 - beta1) * grad
    v = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    p = param * (1 - lr * weight_decay) - lr / first * m / (np.sqrt(v / second) + eps)
    return p.astype(param.dtype), m.astype(exp_avg.dtype), v.astype(exp_avg_sq.dtype)
