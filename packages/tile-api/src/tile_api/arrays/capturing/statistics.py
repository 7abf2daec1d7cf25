"""Medians, quantiles, covariances and convolutions: programs of other functions of NumPy."""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import astype, common_type, lift
from tile_api.arrays.capturing.elementwise import where as choose
from tile_api.arrays.capturing.folds import Axes, axes_of, count_nonzero, mean
from tile_api.arrays.capturing.folds import sum as summed
from tile_api.arrays.capturing.indexing import take_along_axis
from tile_api.arrays.capturing.joins import concatenate, diagonal, pad, stack
from tile_api.arrays.capturing.sorting import sort
from tile_api.arrays.capturing.views import (
    expand_dims,
    flip,
    moveaxis,
    reshape,
    sliding_window_view,
    transpose,
)
from tile_api.arrays.equations.sizes import whole
from tile_core.errors import ArrayShapeError, UnknownArrayFunction


def median(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """`numpy.median`: the mean of the one or two in the middle."""
    rows, over = _rows(a, axis)
    in_order, size = sort(rows), int(rows.shape[-1])
    if not size:
        return _kept(mean(rows, -1), over, keepdims)
    middle = in_order[..., (size - 1) // 2 : size // 2 + 1]
    return _kept(_unless_nan(mean(middle, -1), in_order), over, keepdims)


def nanmedian(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """`numpy.nanmedian`: the median of what is a number."""
    x: Any = lift(a)
    if not x.dtype.is_float:
        return median(x, axis, keepdims=keepdims)
    rows, over = _rows(x, axis)
    if not int(rows.shape[-1]):
        return _kept(mean(rows, -1), over, keepdims)
    in_order = sort(rows)  # what is no number comes last
    count: Any = count_nonzero(in_order == in_order, -1, keepdims=True)
    places = (np.maximum(count - 1, 0) // 2, count // 2)
    middle = concatenate([take_along_axis(in_order, k, -1) for k in places], -1)
    return _kept(mean(middle, -1), over, keepdims)


def quantile(
    a: Any, q: Any, axis: Axes = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """`numpy.quantile` at numbers that are known when the function is captured.

    Between two elements it is interpolated linearly; ``lower``, ``higher`` and ``midpoint`` are the
    other methods.
    """
    if method not in _BELOW:
        raise UnknownArrayFunction(
            f"np.quantile has no method {method!r} here", hint=f"use one of {', '.join(_BELOW)}"
        )
    asked = np.asarray(q, np.float64)
    if not ((asked >= 0) & (asked <= 1)).all():
        raise ArrayShapeError("quantiles are between 0 and 1, percentiles between 0 and 100")
    rows, over = _rows(a, axis)
    if not int(rows.shape[-1]):
        raise ArrayShapeError("np.quantile of no elements")
    in_order, size = sort(rows), int(rows.shape[-1])
    kind = in_order.dtype
    is_between = method == "midpoint" or (method == "linear" and np.asarray(q).dtype.kind == "f")
    if is_between and (not kind.is_float or np.ndim(q)):  # NumPy computes in doubles then
        kind = common_type((in_order, np.float64(0)), (in_order, lift(np.float64(0))))

    def one(share: float) -> Array:
        at = share * (size - 1)
        low = int(_BELOW[method](at))
        made = astype(in_order[..., low], kind)
        if is_between:
            part = 0.5 if method == "midpoint" and at != low else at - low
            first: Any = made
            last: Any = astype(in_order[..., builtins.min(low + 1, size - 1)], kind)
            apart = last - first
            made = last - apart * (1 - part) if part >= 0.5 else first + apart * part
        return made

    made = [
        _kept(_unless_nan(one(share), in_order), over, keepdims) for share in asked.ravel().tolist()
    ]
    return reshape(stack(made), [*asked.shape, *made[0].shape]) if asked.ndim else made[0]


_BELOW = {
    "linear": math.floor, "lower": math.floor, "higher": math.ceil, "midpoint": math.floor,
}  # fmt: skip
"""The element below a place that is no whole number."""


def percentile(
    a: Any, q: Any, axis: Axes = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """`numpy.percentile`: quantiles in hundredths."""
    share = q / 100 if isinstance(q, (int, float)) else np.asarray(q, np.float64) / 100
    return quantile(a, share, axis, method=method, keepdims=keepdims)


def _rows(a: Any, axis: Axes) -> tuple[Array, list[int]]:
    """Return an array whose last dimension is what is reduced, and which axes those were."""
    x = lift(a)
    over = axes_of(axis, x.ndim)
    kept = [n for k, n in enumerate(x.shape) if k not in over]
    size = math.prod(int(x.shape[k]) for k in over)
    return reshape(moveaxis(x, over, range(x.ndim - len(over), x.ndim)), [*kept, size]), over


def _kept(x: Array, over: Sequence[int], keepdims: bool) -> Array:
    return expand_dims(x, sorted(over)) if keepdims and over else x


def _unless_nan(x: Array, in_order: Array) -> Array:
    """Return `x`, or what is no number where a row has one, which is last in order then."""
    last: Any = in_order[..., -1]
    return choose(last == last, x, last) if in_order.dtype.is_float else x


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Array:
    """`numpy.cov`: of variables in rows, or in columns if not `rowvar`.

    An observation counts as often as `fweights` says, and as much as `aweights`.
    """

    def variables(given: Any) -> Array:
        x = lift(given)
        if x.ndim > 2:
            raise ArrayShapeError(f"np.cov of {x.ndim} dimensions: there are two at most")
        rows = x if x.ndim == 2 else reshape(x, [1, -1])
        return rows if rowvar or x.ndim < 2 else transpose(rows)

    x = variables(m) if y is None else concatenate([variables(m), variables(y)], 0)
    number: Any = astype(x, dtype or "float64")
    less = ddof if ddof is not None else 0 if bias else 1
    given = [lift(w) for w in (fweights, aweights) if w is not None]
    if bad := [w for w in given if w.shape != (x.shape[1],)]:
        raise ArrayShapeError(f"np.cov: weights {bad[0].shape} of {x.shape[1]} observations")
    made: Any
    if not given:
        centred = number - mean(number, 1, keepdims=True)
        made = centred @ centred.T / builtins.max(int(x.shape[1]) - less, 0)
    else:
        weights: Any = functools.reduce(operator.mul, given)
        weights = astype(weights, number.dtype)
        total: Any = summed(weights)
        centred = number - summed(number * weights, 1, keepdims=True) / total
        left = total - less if aweights is None or not less else \
            total - less * summed(weights * aweights) / total  # fmt: skip
        made = (centred * weights) @ centred.T / np.maximum(left, 0)
    return made[0, 0] if int(x.shape[0]) == 1 else made  # type: ignore[no-any-return]


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """`numpy.corrcoef`: covariances over deviations, between -1 and 1."""
    c: Any = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        made: Array = c / c
        return made
    deviation = np.sqrt(diagonal(c))
    made = np.clip(c / deviation[:, None] / deviation[None, :], -1, 1)
    return made


def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    """`numpy.convolve`: sums of products with the other sequence backwards."""
    return _slid(*_sequences(a, v, "np.convolve"), mode, "np.convolve", is_backwards=True)


def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    """`numpy.correlate`: sums of products with the other sequence as it is."""
    x, y = _sequences(a, v, "np.correlate")
    made = _slid(x, y, mode, "np.correlate", is_backwards=False)
    return flip(made) if whole(x.size) < whole(y.size) else made


def _sequences(a: Any, v: Any, what: str) -> tuple[Array, Array]:
    x, y = lift(a), lift(v)
    if x.ndim != 1 or y.ndim != 1 or not x.size or not y.size:
        raise ArrayShapeError(f"{what} takes two sequences of one or more elements")
    return x, y


def _slid(x: Array, y: Array, mode: str, what: str, *, is_backwards: bool) -> Array:
    """Return products of the shorter sequence with all windows of the longer one."""
    if mode not in ("full", "same", "valid"):
        raise UnknownArrayFunction(
            f"{what} has no mode {mode!r}", hint="use 'full', 'same' or 'valid'"
        )
    long, short = (x, y) if whole(x.size) >= whole(y.size) else (y, x)
    size = whole(short.size)
    around = {"full": (size - 1, size - 1), "same": (size // 2, (size - 1) // 2), "valid": (0, 0)}
    windows: Any = sliding_window_view(pad(long, around[mode]), size)
    made: Array = windows @ (flip(short) if is_backwards else short)
    return made
