"""What models are made of, each defined by a program of NumPy's words: `tile.nn`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import apply
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.function import function
from tile_api.frontend.source import calling_span
from tile_core.errors import FrontendValueError


def one_of(what: str, given: Any, *known: Any) -> None:
    """Refuse what is not among `known`."""
    if given not in known:
        raise FrontendValueError(
            f"{what} is {given!r}",
            span=calling_span(),
            hint=f"it is one of {', '.join(map(repr, known))}",
        )


@function
def erf(x: Any) -> Any:
    """Return the error function of each element, which NumPy does not have."""
    if isinstance(x, Array):
        return apply(UFUNCS["erf"], "exp", (x,))
    return np.vectorize(math.erf)(x).astype(np.exp(x).dtype)


@function
def silu(x: Any) -> Any:
    """Return ``x`` times its logistic function."""
    return x / (1 + np.exp(-x))


@function
def gelu(x: Any, *, approximate: str = "none") -> Any:
    """Return ``x`` times the normal distribution, or, `approximate` "tanh", nearly that."""
    one_of("tile.nn.gelu: approximate", approximate, "none", "tanh")
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


@function
def softmax(x: Any, *, axis: int = -1) -> Any:
    """Return exponentials along an axis, divided by their sum."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


@function
def log_softmax(x: Any, *, axis: int = -1) -> Any:
    """Return the logarithm of the softmax along an axis."""
    z = x - np.max(x, axis=axis, keepdims=True)
    return z - np.log(np.sum(np.exp(z), axis=axis, keepdims=True))


@function
def logsumexp(x: Any, *, axis: int = -1, keepdims: Any = False) -> Any:
    """Return the logarithm of the sum of exponentials along an axis."""
    return np.logaddexp.reduce(x, axis=axis, keepdims=keepdims)


@function
def cross_entropy(x: Any, target: Any) -> Any:
    """Return minus the logarithm of the softmax of each row, at the row's `target`."""
    hit = np.arange(x.shape[-1]) == np.expand_dims(target, -1)
    return np.logaddexp.reduce(x, axis=-1) - np.sum(np.where(hit, x, 0), axis=-1)


@function
def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    """Return rows of mean 0 and variance 1, times a weight and plus a bias for each column."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    normal = centred / np.sqrt(np.var(x, axis=-1, keepdims=True) + eps)
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias


@function
def group_norm(
    x: Any, groups: int, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> Any:
    """Return images, ``(batch, channels, ...)``, normalised in groups of channels.

    `weight` and `bias` have an element for each channel.
    """
    rows = np.reshape(x, (x.shape[0], groups, -1))
    normal = np.reshape(layer_norm(rows, eps=eps), x.shape)
    each = (-1, *[1] * (x.ndim - 2))
    scaled = normal if weight is None else normal * np.reshape(weight, each)
    return scaled if bias is None else scaled + np.reshape(bias, each)


@function
def rms_norm(x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
    """Return rows divided by the root of their mean square, times a weight for each column."""
    normal = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return normal if weight is None else normal * weight


@function
def rotary(x: Any, cos: Any, sin: Any, *, interleaved: bool = False) -> Any:
    """Return rows whose pairs of elements are turned by angles.

    An element of the first half and one of the second are a pair; if `interleaved`, neighbours.
    `cos` and `sin` have an element for each pair.
    """
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        return np.reshape(np.stack(turned, axis=-1), x.shape)
    return np.concatenate(turned, axis=-1)


@function
def dequantize(x: Any, scale: Any, zero: Any = 0, *, bits: int = 8) -> Any:
    """Return ``(x - zero) * scale``, in the type of `scale`.

    Of fewer than 8 `bits`, several stand in a byte, those of lower indices in lower bits. Where
    `scale` or `zero` have fewer columns, each is for a group of neighbours.
    """
    one_of("tile.nn.dequantize: bits", bits, 1, 2, 4, 8)
    if bits < 8:
        codes = np.expand_dims(x, -1) >> (np.arange(8 // bits, dtype="uint8") * bits)
        x = np.reshape(codes & (2**bits - 1), (*x.shape[:-1], -1))
    columns = x.shape[-1]
    scale, zero = (
        np.repeat(a, columns // np.shape(a)[-1], axis=-1) if np.ndim(a) else a
        for a in (scale, zero)
    )
    return (x.astype(scale.dtype) - zero) * scale


@function
def conv2d(
    x: Any, weight: Any, bias: Any = None, *, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Return images, ``(batch, channels, height, width)``, each pixel from a window of pixels.

    Parameters
    ----------
    weight
        ``(results, channels / groups, height, width)``: the sum of a window is weighted by it.
    bias
        An element for each result.
    stride, padding, dilation
        Steps between windows, zeros around an image, steps within a window; a pair for height
        and width if they differ, `padding` a pair of pairs if its ends do.
    """
    (sy, sx), (dy, dx) = (p if isinstance(p, tuple) else (p, p) for p in (stride, dilation))
    pads = padding if isinstance(padding, tuple) else (padding, padding)
    x = np.pad(x, ((0, 0), (0, 0), *(p if isinstance(p, tuple) else (p, p) for p in pads)))
    size = [d * (n - 1) + 1 for d, n in zip((dy, dx), weight.shape[2:], strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, tuple(size), axis=(2, 3))
    windows = windows[:, :, ::sy, ::sx, ::dy, ::dx]
    windows = np.reshape(windows, (x.shape[0], groups, weight.shape[1], *windows.shape[2:]))
    results = weight.shape[0]
    weight = np.reshape(weight, (groups, -1, *weight.shape[1:]))
    made = np.einsum("ngchwij,gocij->ngohw", windows, weight)
    made = np.reshape(made, (x.shape[0], results, *made.shape[3:]))
    return made if bias is None else made + np.reshape(bias, (-1, 1, 1))


@function
def conv1d(
    x: Any, weight: Any, bias: Any = None, *, stride: int = 1, padding: Any = 0,
    dilation: int = 1, groups: int = 1,
) -> Any:  # fmt: skip
    """Return rows, ``(batch, channels, length)``, each element from a window of elements.

    Parameters
    ----------
    weight
        ``(results, channels / groups, length)``: the sum of a window is weighted by it.
    bias
        An element for each result.
    stride, padding, dilation
        Steps between windows, zeros at both ends, steps within a window; `padding` may be a
        pair: ``(length - 1, 0)`` lets no window see what comes later.
    """
    made = conv2d(
        np.expand_dims(x, 2), np.expand_dims(weight, 2), bias, stride=(1, stride),
        padding=(0, padding), dilation=(1, dilation), groups=groups,
    )  # fmt: skip
    return np.squeeze(made, 2)


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


@function
def attention_varlen(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, *, causal: bool = False,
    scale: float | None = None,
) -> Any:  # fmt: skip
    """Return attention within sequences of different lengths, which stand one behind the other.

    Parameters
    ----------
    q, k, v
        ``(tokens, heads, width)``; several heads of `q` may share one of `k` and `v`.
    cu_seqlens_q, cu_seqlens_k
        ``(batch + 1,)``: where sequences begin, and where the last one ends; some may be empty.
    causal
        Whether a query sees no later keys; the last one of each sequence sees all of it.
    scale
        Of scores; default: one over the root of the width. A query that sees nothing has 0.
    """
    q, k, v = (np.swapaxes(a, 0, 1) for a in (q, k, v))
    k, v = (np.repeat(a, q.shape[0] // a.shape[0], axis=0) for a in (k, v))
    s = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    i, j = np.arange(s.shape[1])[:, None, None], np.arange(s.shape[2])[:, None]
    sees = (cu_seqlens_q[:-1] <= i) & (i < cu_seqlens_q[1:])
    sees = sees & (cu_seqlens_k[:-1] <= j) & (j < cu_seqlens_k[1:])
    if causal:
        sees = sees & (j - cu_seqlens_k[1:] <= i - cu_seqlens_q[1:])
    s = np.where(np.any(sees, axis=-1), s, -np.inf)
    most = np.max(s, axis=-1, keepdims=True)
    p = np.exp(s - np.where(most == -np.inf, 0, most))
    total = np.sum(p, axis=-1, keepdims=True)
    return np.swapaxes(p @ v / np.where(total == 0, 1, total), 0, 1).astype(q.dtype)


@function
def filter_logits(
    logits: Any, temperature: Any = 1.0, top_k: Any = 0, top_p: Any = 1.0, min_p: Any = 0.0
) -> Any:
    """Return logits over a temperature, and -inf where nothing is to be drawn from.

    Parameters
    ----------
    logits
        ``(..., classes)``.
    temperature, top_k, top_p, min_p
        Numbers, or ``(...)``: one for each row. Not above 0: the largest logit alone; so many of
        the largest, 0: all; of these as few of the largest as have this share of the probability;
        and of these what is so likely in comparison with the likeliest.
    """
    temperature, top_k, top_p, min_p = (
        a[..., None] if getattr(a, "ndim", 0) else a for a in (temperature, top_k, top_p, min_p)
    )
    x, classes = logits.astype("float32"), logits.shape[-1]
    most = np.max(x, axis=-1, keepdims=True)
    scale = np.where(temperature > 0, np.minimum(temperature, np.finfo("float32").max), 1)
    scale = scale.astype("float32")
    count = np.where((temperature > 0) & (most < np.inf), top_k, 1)
    last = np.where((count < 1) | (count > classes), classes, count) - 1
    falling = np.sort(x, axis=-1)[..., ::-1]
    least = np.maximum(np.take_along_axis(falling, last, axis=-1), np.finfo("float32").min)
    p = np.where(falling == most, 1, np.exp((falling - most) / scale))
    p = np.where(falling >= least, p, 0)
    sums = np.cumsum(p, axis=-1)
    is_out = (sums - p >= top_p * sums[..., -1:]) & (top_p < 1)
    share = np.min(np.where(is_out, np.inf, falling), axis=-1, keepdims=True)
    least = np.minimum(np.maximum(least, share), most)
    likely = np.exp((x - most) / scale) >= np.where(min_p < 1, min_p, 1)
    stays = (likely | (x == most)) & (x >= least)
    return np.where(stays, x / scale, np.where(np.isnan(most), np.nan, -np.inf)).astype("float32")


@function
def sample(
    logits: Any, uniform: Any, temperature: Any = 1.0, top_k: Any = 0, top_p: Any = 1.0,
    min_p: Any = 0.0,
) -> Any:  # fmt: skip
    """Return one class of each row, drawn by the softmax of what `filter_logits` leaves.

    Parameters
    ----------
    logits
        ``(..., classes)``.
    uniform
        ``(...)``, from 0 to less than 1: the first class at which the running sum of probabilities
        is larger is drawn. No other numbers are drawn: equal arguments give equal results.
    temperature, top_k, top_p, min_p
        As for `filter_logits`. Not above 0: the first of the largest logits.

    Returns
    -------
    ids
        ``(...)``, int32; -1 for rows with a NaN, or of -inf alone.
    """
    x = filter_logits(logits, temperature, top_k, top_p, min_p)
    most = np.max(x, axis=-1, keepdims=True)
    p = np.where(x == most, 1, np.exp(x - most))
    sums = np.cumsum(p, axis=-1)
    beyond = np.where(temperature > 0, np.clip(uniform, 0, 1 - 2**-24), 0) * sums[..., -1]
    found = np.sum(sums <= beyond[..., None], axis=-1)
    last = np.max(np.where(p > 0, np.arange(x.shape[-1]), 0), axis=-1)
    return np.where(most[..., 0] > -np.inf, np.minimum(found, last), -1).astype("int32")
