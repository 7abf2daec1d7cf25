"""Interpolation, bins, finite differences, integrals of samples, and polynomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.creation import zeros
from tile_api.arrays.capturing.decompositions import vander
from tile_api.arrays.capturing.elementwise import astype, lift, where
from tile_api.arrays.capturing.folds import count_nonzero
from tile_api.arrays.capturing.folds import sum as total
from tile_api.arrays.capturing.indexing import take
from tile_api.arrays.capturing.joins import concatenate, diff
from tile_api.arrays.capturing.singular_values import lstsq
from tile_api.arrays.capturing.sorting import argsort
from tile_api.arrays.capturing.views import axis_of, expand_dims, moveaxis
from tile_api.arrays.equations.expressions import index, walk
from tile_api.arrays.equations.sizes import whole
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

MOST_COMPARED = 64
"""Elements of a sorted sequence that are all compared with each that is searched for."""


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """`numpy.searchsorted`: how many elements of a sorted sequence come before each of others.

    `sorter` are the places of a sequence that is not sorted, in its order.
    """
    if side not in ("left", "right"):
        raise UnknownArrayFunction(f"np.searchsorted has no side {side!r}: 'left' or 'right'")
    known = _sequence(a, "np.searchsorted")
    if sorter is not None:
        known = take(known, sorter)
    asked, size = lift(v), int(known.size)
    if size <= MOST_COMPARED or not _is_read(known):
        return count_nonzero(_are_before(known, expand_dims(asked, asked.ndim), side), -1)
    found: Any = zeros(asked.shape, "int64")
    while size > 1:  # the number is one of `found` to `found + size`
        half = size // 2
        is_beyond: Any = _are_before(take(known, found + (half - 1)), asked, side)
        found, size = found + where(is_beyond, half, 0), size - half
    return lift(found + where(_are_before(take(known, found), asked, side), 1, 0))


def _are_before(known: Any, asked: Any, side: str) -> Any:
    """Return which elements come before others; what is no number comes last."""
    before: Any = known < asked if side == "left" else known <= asked
    if asked.dtype.is_float or known.dtype.is_float:
        is_last = asked != asked
        before = before | (is_last & (known == known) if side == "left" else is_last)
    return before


def _is_read(x: Any) -> bool:
    """Tell whether an element takes no more than to read others."""
    return all(n.op != "reduce" for n in walk(x.at((index("n", int(x.size)),))))


def digitize(x: Any, bins: Any, right: bool = False) -> Array:
    """`numpy.digitize`: the bin of each element; edges ascend or descend."""
    edges: Any = _sequence(bins, "np.digitize")
    side = "left" if right else "right"
    ascending, descending = searchsorted(edges, x, side), searchsorted(edges[::-1], x, side)
    size = int(edges.size)
    if isinstance(bins, Array):  # what it holds is known when the kernel runs
        return where(edges[0] <= edges[-1], ascending, size - descending) if size else ascending
    steps = np.diff(np.asarray(bins))
    if not (steps >= 0).all() and not (steps <= 0).all():
        raise ArrayShapeError("np.digitize: edges neither ascend nor descend")
    made: Any = ascending if (steps >= 0).all() else size - descending
    return lift(made)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Array:
    """`numpy.interp`: linear between points whose places ascend, or repeat after a `period`."""
    places: Any = astype(_sequence(xp, "np.interp"), "float64")
    values: Any = astype(_sequence(fp, "np.interp"), "float64")
    asked: Any = astype(lift(x), "float64")
    if int(places.size) != values.size or not places.size:
        raise ArrayShapeError(f"np.interp: {places.size} places, {values.size} values")
    if period is not None:
        if not period:
            raise ArrayShapeError("np.interp: a period of 0")
        period, left, right = abs(period), None, None
        asked, places = asked % period, places % period
        order = argsort(places)
        places, values = take(places, order), take(values, order)
        places = concatenate([places[-1:] - period, places, places[:1] + period])
        values = concatenate([values[-1:], values, values[:1]])
    size = int(places.size)
    made: Any = values[0]
    if size > 1:
        last: Any = np.clip(searchsorted(places, asked, "right"), 1, size - 1)
        x0, x1 = take(places, last - 1), take(places, last)
        y0, y1 = take(values, last - 1), take(values, last)
        made = (y1 - y0) / (x1 - x0) * (asked - x0) + y0
        made = where(asked == x0, y0, where(asked == x1, y1, made))
    made = where(asked < places[0], values[0] if left is None else left, made)
    made = where(asked > places[-1], values[-1] if right is None else right, made)
    return where(asked == asked, made, asked) if size > 1 else lift(made)


def _sequence(given: Any, what: str) -> Any:
    x = lift(given)
    if x.ndim != 1:
        raise ArrayShapeError(f"{what} takes a sequence, and got {x.ndim} dimensions")
    return x


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Array:
    """`numpy.trapezoid`: the area below lines between samples."""
    rows: Any = moveaxis(y, axis, -1)
    if x is None:
        width: Any = dx
    else:
        places = lift(x)
        width = diff(places if places.ndim == 1 else moveaxis(places, axis, -1))
    return total(width * (rows[..., 1:] + rows[..., :-1]) / 2.0, -1)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """`numpy.gradient`: differences to both sides; distances are numbers, or places of samples."""
    x = lift(f)
    along = [axis_of(k, x.ndim) for k in (range(x.ndim) if axis is None else np.atleast_1d(axis))]
    given = [*varargs] * (len(along) if len(varargs) == 1 else 1) or [1.0] * len(along)
    if len(given) != len(along):
        raise ArrayShapeError(f"np.gradient: {len(given)} distances for {len(along)} dimensions")
    if edge_order not in (1, 2):
        raise UnknownArrayFunction(f"np.gradient: edge_order is 1 or 2, not {edge_order!r}")
    whole = x if x.dtype.is_float else astype(x, "float64")
    made = [
        moveaxis(_slopes(moveaxis(whole, k, -1), step, edge_order), -1, k)
        for k, step in zip(along, given, strict=True)
    ]
    return made[0] if len(made) == 1 else tuple(made)


def _slopes(y: Any, step: Any, edge_order: int) -> Array:
    """Return derivatives along the last dimension."""
    size = int(y.shape[-1])
    if size < edge_order + 1:
        raise ArrayShapeError(
            f"np.gradient: {size} samples, and edges of order {edge_order} need {edge_order + 1}"
        )
    before, here, after = y[..., :-2], y[..., 1:-1], y[..., 2:]
    if not np.ndim(step):
        start = end = step, step
        inner = (after - before) / (2.0 * step)
    else:
        h: Any = diff(_sequence(step, "np.gradient"))
        if h.size + 1 != size:
            raise ArrayShapeError(f"np.gradient: {h.size + 1} places of {size} samples")
        start, end = (h[0:1], h[1:2]), (h[-1:], h[-2:-1])
        a, b = h[:-1], h[1:]
        inner = b / (a * (a + b)) * -before + (b - a) / (a * b) * here + a / (b * (a + b)) * after
    back: Any = y[..., ::-1]
    edges: Any = [_at_edge(y, *start, edge_order), _at_edge(back, *end, edge_order)]
    return astype(concatenate([edges[0], inner, -edges[1]], -1), y.dtype)


def _at_edge(y: Any, a: Any, b: Any, edge_order: int) -> Any:
    """Return the derivative at the first sample; `a` and `b` are the first two distances."""
    first, second, third = y[..., 0:1], y[..., 1:2], y[..., 2:3]
    if edge_order == 1:
        return (second - first) / a
    rise = (a + b) / (a * b) * second - a / (b * (a + b)) * third
    return rise - (2.0 * a + b) / (a * (a + b)) * first


def polyval(p: Any, x: Any) -> Array:
    """`numpy.polyval`: a polynomial with its highest power first."""
    made: Any = np.zeros_like(lift(x))
    for coefficient in p if isinstance(p, Array) else np.asarray(p):
        made = made * x + coefficient
    return lift(made)


def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None,
    cov: bool | str = False,
) -> Any:  # fmt: skip
    """`numpy.polyfit`, by the singular values of the powers."""
    at, wanted = lift(x) + 0.0, lift(y) + 0.0
    if at.ndim != 1 or wanted.ndim not in (1, 2) or whole(at.size) != whole(wanted.shape[0]):
        raise ArrayShapeError("np.polyfit takes a sequence x, and as many rows y")
    size, is_one = int(at.size), wanted.ndim == 1
    powers: Any = vander(at, deg + 1)
    if w is not None:
        weights: Any = lift(w) + 0.0
        powers = powers * weights[:, None]
        wanted = wanted * (weights if is_one else weights[:, None])
    scale = np.sqrt((powers * powers).sum(0))
    powers = powers / scale
    by = size * np.finfo(str(at.dtype)).eps if rcond is None else rcond
    found, *others = lstsq(powers, wanted, by)
    found = found / (scale if is_one else scale[:, None])
    if full:
        return found, *others, by
    if not cov:
        return found
    spread = np.linalg.inv(powers.T @ powers) / np.outer(scale, scale)
    if cov != "unscaled":
        if size <= deg + 1:
            raise ArrayShapeError(f"np.polyfit: {size} points tell no covariance of {deg + 1}")
        by = others[0] / (size - deg - 1)
        return found, spread * by[0] if is_one else spread[:, :, None] * by
    return found, spread if is_one else spread[:, :, None]


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """`numpy.piecewise`: functions, or numbers, where conditions hold; the last counts."""
    known: Any = lift(x)
    conditions = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ArrayShapeError(
            f"np.piecewise: {len(conditions)} conditions, {len(funclist)} functions"
        )

    def value(of: Callable[..., Any] | Any) -> Array:
        return astype(lift(of(known, *args, **kw) if callable(of) else of), known.dtype)

    made: Any = value(funclist[-1] if len(funclist) > len(conditions) else 0)
    for condition, of in zip(conditions, funclist, strict=False):
        made = where(condition, value(of), made)
    return lift(made)
