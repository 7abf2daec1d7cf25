"""`tile_nn.selective_state_update`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks
from tile_nn.kernels.mamba_chunk_scan import check_groups, check_heads, of_time, passed


@tile.function
def selective_state_update(
    state: Any, x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any = None, z: Any = None,
    dt_bias: Any = None, *, dt_softplus: bool = False,
) -> Any:  # fmt: skip
    """Return what a state gives after one step, and the state: Mamba-2's step of decoding.

    Parameters
    ----------
    state
        ``(batch, heads, p, n)``, floats of any type.
    x
        ``(batch, heads, p)``, floats.
    dt
        ``(batch, heads)``, floats: how long the step takes.
    a, d, dt_bias
        ``(heads,)``, floats, as for `mamba_chunk_scan`.
    b, c
        ``(batch, groups, n)``, floats: where states are written and read.
    z
        Like `x`: results are multiplied by ``silu(z)``; None: they are not.
    dt_softplus
        Whether ``log(1 + exp(dt))`` stands for `dt`, its bias added.

    Returns
    -------
    y, state
        Of the shape and type of `x`; of those of `state`. Computed in float32, of float64 in
        float64.

    Notes
    -----
    Known elsewhere by this name in mamba and FlashInfer, where `state` is changed in place and `a`,
    `dt` may differ within a head.
    """
    kernel = "selective_state_update"
    checks.floats(
        kernel, state=state, x=x, dt=dt, a=a, b=b, c=c, d=d, z=z, dt_bias=dt_bias
    )  # fmt: skip
    checks.require(
        state.ndim == 4, kernel, f"state has {state.ndim} dimensions", "it is (batch, heads, p, n)"
    )
    batch, heads, width, size = state.shape
    checks.of_shape(kernel, (batch, heads, width), "(batch, heads, p)", x=x, z=z)
    checks.of_shape(kernel, (batch, heads), "(batch, heads)", dt=dt)
    check_groups(kernel, (batch,), "(batch, groups, n)", heads, b, c)
    checks.of_shape(kernel, (*b.shape[:2], size), "(batch, groups, n)", b=b)
    check_heads(kernel, heads, width, a=a, d=d, dt_bias=dt_bias)
    wide = "float64" if x.dtype == "float64" else "float32"
    dt = of_time(dt.astype(wide), dt_bias, dt_softplus)
    xs, b, c = x.astype(wide), b.astype(wide), c.astype(wide)
    b, c = (np.repeat(t, heads // b.shape[1], axis=1)[..., None, :] for t in (b, c))
    new = np.exp(dt * a)[..., None, None] * state.astype(wide)
    new = new + (dt[..., None] * xs)[..., None] * b
    y = passed(np.sum(new * c, axis=-1), xs, d, z)
    return y.astype(x.dtype), new.astype(state.dtype)
