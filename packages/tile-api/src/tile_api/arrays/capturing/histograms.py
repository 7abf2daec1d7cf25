"""Histograms: each bin counts, or adds up, what lies between its edges; the last one is closed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.creation import arange, zeros
from tile_api.arrays.capturing.elementwise import astype, lift, where
from tile_api.arrays.capturing.folds import max, min
from tile_api.arrays.capturing.folds import sum as total
from tile_api.arrays.capturing.interpolation import searchsorted
from tile_api.arrays.capturing.joins import diff
from tile_api.arrays.capturing.products import matmul
from tile_api.arrays.capturing.scattering import at
from tile_api.arrays.capturing.views import expand_dims, reshape, swapaxes
from tile_api.arrays.equations.equations import indices_of
from tile_api.arrays.equations.index_bounds import is_below, is_natural
from tile_core.errors import ArrayShapeError, DataDependentShape, UnknownArrayFunction


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """`numpy.histogram`: what is found, and the edges."""
    x: Any = reshape(lift(a), -1)
    x = astype(x, "uint8") if x.dtype.is_bool else x
    edges = _edges(x, bins, range, "np.histogram")
    chosen = _chosen(x, lift(edges))
    if weights is None:
        found: Any = total(where(chosen, 1, 0), 0)
    else:
        w = _weights(weights, a)
        found = astype(total(where(chosen, expand_dims(w, 1), 0), 0, dtype=w.dtype), w.dtype)
    if density:
        found = found / astype(diff(edges), "float64") / total(found)
    return found, edges


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """`numpy.bincount`, of what is known to be below `minlength`: then that many are counted."""
    values = lift(x)
    if values.ndim != 1 or not (values.dtype.is_int or values.dtype.is_bool):
        raise ArrayShapeError(
            f"np.bincount counts whole numbers of one dimension, not {values.dtype} of "
            f"{values.ndim}"
        )
    if not _is_below(values, minlength):
        raise DataDependentShape(
            "how many elements np.bincount gives is known only when the kernel runs",
            hint="count n of them: y = np.zeros(n, int); np.add.at(y, x, 1); or np.bincount(x % n, "
            "minlength=n)",
        )
    if weights is None:
        weights = np.ones((), "int64")
    elif lift(weights).shape != values.shape:
        raise ArrayShapeError("np.bincount: as many weights as numbers")
    else:
        weights = astype(weights, "float64")
    made = zeros(minlength, dtype=str(lift(weights).dtype))
    at("add", made, astype(values, "int64"), weights)
    return made.usable()


def _is_below(x: Array, end: int) -> bool:
    """Tell whether all elements are known to be from 0 up to a number."""
    if x.dtype.is_bool or x.dtype.startswith("uint"):
        return x.dtype.bits < 64 and 1 << (1 if x.dtype.is_bool else x.dtype.bits) <= end
    element = x.at(indices_of(x.shape))
    return is_natural(element) and is_below(element, end)


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None,
    weights: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """`numpy.histogram2d`: what is found, and the edges of rows and columns."""
    one: Any = lift(x)
    other: Any = lift(y)
    if one.ndim != 1 or tuple(one.shape) != tuple(other.shape):
        raise ArrayShapeError("np.histogram2d: places of one dimension, of x as many as of y")
    kind = np.result_type(one.dtype.numpy(), other.dtype.numpy())
    is_pair = isinstance(bins, (list, tuple)) and len(bins) == 2
    parts = bins if is_pair else (bins, bins)
    ranges = (None, None) if range is None else range
    edges = [
        _edges(astype(v, kind), b, r, "np.histogram2d", wide=True)
        for v, b, r in zip((one, other), parts, ranges, strict=True)
    ]
    rows, columns = (
        astype(_chosen(astype(v, kind), lift(e)), "float64")
        for v, e in zip((one, other), edges, strict=True)
    )
    if weights is not None:
        rows = where(rows == 1, expand_dims(astype(_weights(weights, x), "float64"), 1), 0.0)
    found: Any = matmul(swapaxes(rows, 0, 1), columns)
    if density:
        found = found / expand_dims(diff(edges[0]), 1) / lift(diff(edges[1])) / total(found)
    return found, edges[0], edges[1]


def _weights(weights: Any, a: Any) -> Any:
    w = lift(weights)
    if tuple(w.shape) != tuple(lift(a).shape):
        raise ArrayShapeError("np.histogram: weights have the shape of what is counted")
    if w.dtype.is_bool:
        raise UnknownArrayFunction("np.histogram: weights of bool", hint="cast with astype")
    return reshape(w, -1)


def _chosen(x: Any, edges: Any) -> Any:
    """Return which bin each element lies in, as a row of truth values."""
    count = int(edges.size) - 1
    if not count:
        return zeros((x.size, 0), "bool")
    at: Any = searchsorted(edges, x, "right") - 1
    at = where(x == edges[-1], count - 1, at)
    return expand_dims(at, 1) == arange(count)


def _edges(x: Any, bins: Any, range: Any, what: str, *, wide: bool = False) -> Any:
    """Return edges: numbers where these are known, else an array that is computed."""
    if isinstance(bins, str):
        raise DataDependentShape(
            f"how many bins {what} has is known only when the kernel runs",
            hint="say how many, or the edges",
        )
    if isinstance(bins, Array) and bins.ndim:
        if bins.ndim != 1 or not bins.size:
            raise ArrayShapeError(f"{what}: edges of {bins.ndim} dimensions")
        return bins
    known = np.empty(0, "float64" if wide else x.dtype.numpy())
    ends: Any = range
    if np.ndim(bins) == 0 and range is None and x.size:
        ends = 0, 1  # in place of what is computed: whatever is wrong with `bins` is told
    made = np.histogram_bin_edges(known, bins, ends)
    if np.ndim(bins) or range is not None or not x.size:
        return made
    return _between(x, len(made) - 1)


def _between(x: Any, count: int) -> Any:
    """Return edges between the least and the largest element, as `numpy.linspace` does."""
    kind = x.dtype if x.dtype.is_float else "float64"
    low: Any = astype(min(x), kind)
    high: Any = astype(max(x), kind)
    is_one: Any = low == high
    low, high = where(is_one, low - 0.5, low), where(is_one, high + 0.5, high)
    made: Any = low + arange(count + 1, dtype=kind) * ((high - low) / count)
    return where(arange(count + 1) == count, high, made)
