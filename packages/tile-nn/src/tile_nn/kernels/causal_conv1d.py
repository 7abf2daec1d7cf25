"""`tile_nn.causal_conv1d`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks

ACTIVATIONS = (None, "silu", "swish")


@tile.function
def causal_conv1d(
    x: Any, weight: Any, bias: Any = None, initial_states: Any = None, *,
    activation: str | None = None, return_final_states: bool = False,
) -> Any:  # fmt: skip
    """Return for each channel the sums of its last elements, weighted: a short convolution.

    Parameters
    ----------
    x
        ``(batch, channels, length)``, floats of any type.
    weight
        ``(channels, width)``, floats: the last column is for the newest element.
    bias
        ``(channels,)``, floats; None: zeros.
    initial_states
        ``(batch, channels, width - 1)``, floats: what came before `x`; None: zeros.
    activation
        ``"silu"``, or ``"swish"``, which is the same; None: none.
    return_final_states
        Whether the last ``width - 1`` elements are returned, too: the next call's first ones.

    Returns
    -------
    y, or (y, final_states)
        Of the shape and type of `x`, and ``(batch, channels, width - 1)``; computed in float32, of
        float64 in float64, and rounded once.

    Notes
    -----
    ``y[t] = bias + Σ_j weight[j] · x[t - width + 1 + j]``. With one element, and the states of the
    call before, it is a step of decoding. Known elsewhere as ``causal_conv1d_fn`` and
    ``causal_conv1d_update`` (causal-conv1d: states are as long as `width` there),
    ``causal_conv1d_fwd`` (SGLang), ``ShortConvolution`` (fla: channels last).
    """
    kernel = "causal_conv1d"
    checks.floats(kernel, x=x, weight=weight, bias=bias, initial_states=initial_states)
    checks.one_of("tile_nn.causal_conv1d: activation", activation, ACTIVATIONS)
    told = "(batch, channels, length)"
    checks.require(x.ndim == 3, kernel, f"x has {x.ndim} dimensions", f"it is {told}")
    batch, channels, length = x.shape
    shape = tuple(map(int, weight.shape))
    checks.require(
        weight.ndim == 2 and weight.shape[0] == channels and shape[1] >= 1, kernel,
        f"weight has shape {shape}, and x {channels} channels",
        "weight is (channels, width), a width of one or more",
    )  # fmt: skip
    checks.of_shape(kernel, (channels,), "(channels,)", bias=bias)
    before = weight.shape[1] - 1
    states = (batch, channels, before)
    checks.of_shape(kernel, states, "(batch, channels, width - 1)", initial_states=initial_states)
    if initial_states is None:
        known = np.pad(x, ((0, 0), (0, 0), (before, 0)))
    else:
        known = np.concatenate([initial_states.astype(x.dtype), x], axis=-1)
    wide = known.astype("float64" if x.dtype == "float64" else "float32")
    y = sum(wide[..., j : j + length] * weight[:, j, None] for j in range(before + 1))
    y = y if bias is None else y + bias[:, None]
    y = (y if activation is None else tile.nn.silu(y)).astype(x.dtype)
    return (y, known[..., length:]) if return_final_states else y
