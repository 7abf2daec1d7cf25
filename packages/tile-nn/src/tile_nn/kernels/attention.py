"""`tile_nn.attention`."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
from tile_nn import checks

LAYOUTS = {"BHTD": "(..., heads, length, d)", "BTHD": "(..., length, heads, d)"}


@tile.function
def attention(
    q: Any, k: Any, v: Any, mask: Any = None, sinks: Any = None, alibi_slopes: Any = None, *,
    causal: bool = False, softmax_scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, layout: str = "BHTD",
    return_lse: bool = False,
) -> Any:  # fmt: skip
    """Return for each query the mean of values, weighted by the softmax of its scores.

    Parameters
    ----------
    q, k, v
        ``(batch, heads, t, d)``, ``(batch, kv_heads, s, d)``, ``(batch, kv_heads, s, dv)``, floats
        of any type. `heads` is a multiple of `kv_heads`: neighbours share one.
    mask
        Broadcasts to ``(batch, heads, t, s)``: where queries may see keys, or floats to add.
    sinks
        ``(heads,)``, floats: logits beside those of keys, neither scaled nor capped, without value.
    alibi_slopes
        ``(heads,)``, floats: ``slope · |i + s - t - j|`` is taken off the score of `i` and `j`.
    causal
        Whether query `i` sees keys ``j <= i + s - t`` alone: the last query sees all.
    softmax_scale, softcap
        Of scores: None is ``d ** -0.5``; ``softcap · tanh(score / softcap)``, unless it is 0.
    window_size
        How many keys before and behind its own position a query sees, both ends included; -1: all.
        A ``sliding_window`` of w in transformers is ``(w - 1, 0)``.
    layout
        ``"BTHD"`` if `q`, `k`, `v` and the result are ``(batch, length, heads, d)``.
    return_lse
        Whether the logarithms of the sums of exponentials are returned, too.

    Returns
    -------
    out, or (out, lse)
        ``(batch, heads, t, dv)``, of the type of `q`; ``(batch, heads, t)``, float32 (of float64
        float64), natural, with the sink's term. A query that sees nothing has 0, and -inf without
        a sink; its gradients are 0.

    Notes
    -----
    Known elsewhere as ``flash_attn_func``, ``scaled_dot_product_attention`` (torch: ``is_causal``
    counts from the first query), ``single_prefill_with_kv_cache`` (FlashInfer: lse to base 2);
    `sinks` as ``s_aux``, ``learnable_sink``. T. Dao, *FlashAttention-2*, 2023.
    """
    _check(q, k, v, mask, sinks, alibi_slopes, window_size, layout)
    if layout == "BTHD":
        q, k, v = (np.swapaxes(x, -3, -2) for x in (q, k, v))
    if q.shape[-3] != k.shape[-3]:
        k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], axis=-3) for x in (k, v))
    s = q @ np.swapaxes(k, -1, -2)
    s = s * (q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    out, lse = attended(_biased(s, mask, alibi_slopes, causal, window_size), v, sinks)
    out = out.astype(q.dtype)
    if layout == "BTHD":
        out = np.swapaxes(out, -3, -2)
    return (
        (out, lse.astype("float64" if q.dtype == "float64" else "float32")) if return_lse else out
    )


def attended(s: Any, v: Any, sinks: Any) -> tuple[Any, Any]:
    """Return means of values by scores, and the logarithms of the sums of exponentials."""
    least: dict[str, Any] = {} if s.shape[-1] else {"initial": -np.inf}  # there may be no keys
    most = np.max(s, axis=-1, keepdims=True, **least)
    if sinks is not None:
        sinks = sinks[..., None, None]
        most = np.maximum(most, sinks)
    most = np.where(most == -np.inf, 0, most)  # a query that sees nothing
    p = np.exp(s - most)
    total = np.sum(p, axis=-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks - most)
    sees = total > 0
    divisor = np.where(sees, total, 1)
    lse = np.where(sees, most + np.log(divisor), -np.inf)
    return p @ v / divisor, lse[..., 0]


def _biased(
    s: Any, mask: Any, alibi_slopes: Any, causal: bool, window_size: tuple[int, int]
) -> Any:
    """Return scores with what depends on positions."""
    n, m = s.shape[-2:]
    i, j = np.arange(n)[:, None] + (m - n), np.arange(m)
    if alibi_slopes is not None:
        s = s - alibi_slopes[..., None, None] * np.abs(i - j)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == "bool" else s + mask
    left, right = window_size
    if causal or right >= 0:
        s = np.where(j <= i + (0 if causal else right), s, -np.inf)
    return s if left < 0 else np.where(j >= i - left, s, -np.inf)


def _check(
    q: Any, k: Any, v: Any, mask: Any, sinks: Any, alibi_slopes: Any, window_size: Any, layout: str
) -> None:
    kernel = "attention"
    checks.one_of("tile_nn.attention: layout", layout, tuple(LAYOUTS))
    checks.floats(kernel, q=q, k=k, v=v, sinks=sinks, alibi_slopes=alibi_slopes)
    checks.of_type(kernel, ("bool", *checks.FLOATS), mask=mask)
    checks.ranked(kernel, 3, LAYOUTS[layout], q=q, k=k, v=v)
    checks.window(kernel, window_size)
    heads, length = (-3, -2) if layout == "BHTD" else (-2, -3)
    shapes = [tuple(map(int, x.shape)) for x in (q, k, v)]
    told = ", ".join(map(str, shapes))
    (of_q, of_k, of_v), number = shapes, [s[heads] for s in shapes]
    checks.require(
        of_q[:-3] == of_k[:-3] == of_v[:-3] and of_q[-1] == of_k[-1]
        and of_k[length] == of_v[length] and number[1] == number[2]
        and number[0] % max(number[1], 1) == 0,
        kernel, f"q, k and v have shapes {told}",
        f"they are {LAYOUTS[layout]}: k has the d of q, v the length and heads of k, and q a "
        "multiple of these heads",
    )  # fmt: skip
    checks.of_shape(kernel, (number[0],), "(heads,)", sinks=sinks, alibi_slopes=alibi_slopes)
    if mask is not None:
        scores = (*of_q[:-3], number[0], of_q[length], of_k[length])
        checks.broadcasts(kernel, scores, "(..., heads, t, s)", mask=mask)
