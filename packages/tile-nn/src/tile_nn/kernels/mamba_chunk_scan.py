"""`tile_nn.mamba_chunk_scan`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks


@tile.function
def mamba_chunk_scan(
    x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any = None, z: Any = None, dt_bias: Any = None,
    initial_states: Any = None, *, dt_softplus: bool = False, return_final_states: bool = False,
) -> Any:  # fmt: skip
    """Return what a state gives at each step that decays, and is written to: Mamba-2's scan.

    Parameters
    ----------
    x
        ``(batch, length, heads, p)``, floats of any type.
    dt
        ``(batch, length, heads)``, floats: how long each step takes.
    a
        ``(heads,)``, floats below 0: the rate of decay, ``-exp(A_log)``.
    b, c
        ``(batch, length, groups, n)``, floats: where states are written and read. `heads` is a
        multiple of `groups`: neighbours share one.
    d
        ``(heads,)``, or ``(heads, p)``, floats: how much of `x` passes by; None: nothing.
    z
        Like `x`: results are multiplied by ``silu(z)``; None: they are not.
    dt_bias
        ``(heads,)``, floats, added to `dt`; None: zeros.
    initial_states
        ``(batch, heads, p, n)``, floats; None: zeros.
    dt_softplus
        Whether ``log(1 + exp(dt))`` stands for `dt`, its bias added.
    return_final_states
        Whether the states after the last step are returned, too.

    Returns
    -------
    y, or (y, final_states)
        Of the shape and type of `x`; ``(batch, heads, p, n)``, float32. Computed in float32, of
        float64 in float64.

    Notes
    -----
    ``S ← exp(a · dt) · S + dt · x bᵀ``, ``y = S c + d · x``. The compiler divides the steps into
    chunks, within which they are products. The gradient of `a` is a difference of sums, and as
    exact as these. Known elsewhere as ``mamba_chunk_scan_combined`` (mamba), where the length of a
    chunk is an argument; a step of decoding is `selective_state_update`. T. Dao, A. Gu,
    *Transformers are SSMs*, 2024.
    """
    _check(x, dt, a, b, c, d, z, dt_bias, initial_states)
    wide = "float64" if x.dtype == "float64" else "float32"
    dt = of_time(dt.astype(wide), dt_bias, dt_softplus)
    xs, b, c = x.astype(wide), b.astype(wide), c.astype(wide)
    if b.shape[2] != x.shape[2]:
        b, c = (np.repeat(t, x.shape[2] // b.shape[2], axis=2) for t in (b, c))
    last, y = _scanned(xs, dt, a, b, c, initial_states)
    y = passed(np.moveaxis(y, 0, 1), xs, d, z).astype(x.dtype)
    return (y, last) if return_final_states else y


def _scanned(x: Any, dt: Any, a: Any, b: Any, c: Any, initial_states: Any) -> tuple[Any, Any]:
    """Return the states after the last step, and what all steps read of them."""

    def step(state: Any, now: Any) -> Any:
        x, dt, b, c = now
        decay = np.exp(dt * a)[..., None, None]
        state = decay * state + (dt[..., None] * x)[..., None] * b[..., None, :]
        return state, np.einsum("bhpn,bhn->bhp", state, c)

    shape = (x.shape[0], *x.shape[2:], b.shape[3])
    start = np.zeros(shape, x.dtype) if initial_states is None else initial_states.astype(x.dtype)
    steps = tuple(np.moveaxis(t, 1, 0) for t in (x, dt, b, c))
    last, y = tile.scan(step, start, steps)
    return last, y


def _check(
    x: Any, dt: Any, a: Any, b: Any, c: Any, d: Any, z: Any, dt_bias: Any, initial_states: Any
) -> None:
    kernel = "mamba_chunk_scan"
    checks.floats(
        kernel, x=x, dt=dt, a=a, b=b, c=c, d=d, z=z, dt_bias=dt_bias, initial_states=initial_states
    )
    told = "(batch, length, heads, p)"
    checks.require(x.ndim == 4, kernel, f"x has {x.ndim} dimensions", f"it is {told}")
    batch, length, heads, width = x.shape
    checks.require(length > 0, kernel, "x has no steps", "a length of one or more")
    checks.of_shape(kernel, x.shape[:3], "(batch, length, heads)", dt=dt)
    check_groups(kernel, (batch, length), "(batch, length, groups, n)", heads, b, c)
    check_heads(kernel, heads, width, a=a, d=d, dt_bias=dt_bias)
    checks.of_shape(kernel, x.shape, "that of x", z=z)
    states = (batch, heads, width, b.shape[3])
    checks.of_shape(kernel, states, "(batch, heads, p, n)", initial_states=initial_states)


def of_time(dt: Any, dt_bias: Any, dt_softplus: bool) -> Any:
    """Return how long steps take."""
    dt = dt if dt_bias is None else dt + dt_bias
    return np.logaddexp(dt, 0) if dt_softplus else dt


def passed(y: Any, x: Any, d: Any, z: Any) -> Any:
    """Return results with what passes by, through the gate."""
    if d is not None:
        y = y + (d if d.ndim == 2 else d[:, None]) * x
    return y if z is None else y * tile.nn.silu(z.astype(y.dtype))


def check_groups(
    kernel: str, steps: tuple[Any, ...], told: str, heads: Any, b: Any, c: Any
) -> None:
    """Refuse where states are written and read if that does not fit the heads."""
    shapes = ", ".join(str(tuple(map(int, t.shape))) for t in (b, c))
    n = len(steps)
    checks.require(
        b.ndim == n + 2 and b.shape[:n] == steps and tuple(b.shape) == tuple(c.shape)
        and heads % max(b.shape[n], 1) == 0 and b.shape[n] > 0,
        kernel, f"b and c have shapes {shapes}, for {heads} heads in {tuple(map(int, steps))}",
        f"they are {told}, heads a multiple of groups",
    )  # fmt: skip


def check_heads(kernel: str, heads: Any, width: Any, *, d: Any, **others: Any) -> None:
    """Refuse what has not one element for each head."""
    checks.of_shape(kernel, (heads,), "(heads,)", **others)
    if d is not None:
        is_wide = d.ndim == 2
        told = "(heads, p)" if is_wide else "(heads,) or (heads, p)"
        checks.of_shape(kernel, (heads, width) if is_wide else (heads,), told, d=d)
