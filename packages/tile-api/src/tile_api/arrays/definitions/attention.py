"""`tile.nn.attention`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.definitions.softmax import softmax
from tile_api.arrays.function import function


@function
def attention(
    q: Any, k: Any, v: Any, *, causal: bool = False, scale: float | None = None,
    window: int | None = None, mask: Any = None,
) -> Any:  # fmt: skip
    """Return for each query the mean of values, weighted by the softmax of its scores.

    Parameters
    ----------
    q, k, v
        ``(..., heads, length, width)``; several heads of `q` may share one of `k` and `v`.
    causal
        Whether a query sees no later keys; the last one sees all.
    scale
        Of scores; default: one over the root of the width.
    window
        A query sees keys that are fewer steps away.
    mask
        What may be seen, or numbers that are added to scores.
    """
    if q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        k, v = (np.repeat(a, q.shape[-3] // a.shape[-3], axis=-3) for a in (k, v))
    s = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    n, m = s.shape[-2:]
    i, j = np.arange(n)[:, None] + (m - n), np.arange(m)
    if causal:
        s = np.where(j <= i, s, -np.inf)
    if window is not None:
        s = np.where((j < i + window) & (i < j + window), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == "bool" else s + mask
    return softmax(s) @ v
