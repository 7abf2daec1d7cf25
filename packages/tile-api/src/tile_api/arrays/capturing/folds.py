"""Reductions: sums, extrema, means and what is defined by them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import (
    astype,
    broadcast,
    common_type,
    element_type,
    lift,
    promoted,
)
from tile_api.arrays.capturing.elementwise import where as choose
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.capturing.views import axis_of, broadcast_to, expand_dims, reshape, squeeze
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import told, variable_of
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.sizes import Size, whole
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import ArrayShapeError

Axes = int | Sequence[int] | None


def fold(kind: str, x: Array, axis: int, dtype: DType) -> Array:
    """Return a reduction over one axis, without the axis."""
    size = x.shape[axis]

    def at(indices: Indices) -> Expr:
        if not size:
            return const(
                math.nan if kind == "mean" else identity(kind, dtype), eq.computed_in(dtype)
            )
        taken = frozenset().union(*(i.free for i in indices))
        name = variable_of(size, taken)
        along = const(0) if size == 1 else eq.index(name, whole(size))
        body = x.read_as(dtype, (*indices[:axis], along, *indices[axis:]))
        return body if size == 1 else eq.reduce(kind, name, whole(size), body)

    return Array((*x.shape[:axis], *x.shape[axis + 1 :]), dtype, at)


def _folded(
    kind: str, a: Any, axis: Axes, keepdims: bool, dtype: DType, where: Any, initial: Any
) -> Array:
    x = lift(a)
    over = sorted(axes_of(axis, x.ndim), reverse=True)
    if kind in ("max", "min") and initial is None:
        _has_elements(x, over, f"np.{kind}")
        if where is not True:
            raise ArrayShapeError(
                f"np.{kind} of chosen elements, of which there may be none", hint="say `initial`"
            )
    if where is not True:
        chosen = lift(where)
        shape = broadcast([chosen.shape, x.shape], f"np.{kind}", (chosen, x))
        x = choose(chosen, broadcast_to(x, shape), identity(kind, x.dtype))
    if not over:
        whole = x
        x = Array(x.shape, dtype, lambda indices: whole.read_as(dtype, indices))
    for k in over:
        x = fold(kind, x, k, dtype)
    if initial is not None:
        first = const(initial, eq.computed_in(dtype))
        rest, row = x, UFUNCS[_UFUNC[kind]]
        x = Array(x.shape, dtype, lambda indices: row(rest.read_as(dtype, indices), first))
    return expand_dims(x, sorted(over)) if keepdims and over else x


def axes_of(axis: Axes, rank: int) -> list[int]:
    """Return the axes that are asked for, counted from the front; None asks for all.

    An array without dimensions has none, which 0 and -1 are taken for.

    Raises
    ------
    ArrayShapeError
        If there is no such axis, or one is named twice.
    """
    if axis is None or (not rank and axis in (0, -1)):
        return list(range(rank))
    asked = [axis_of(k, rank) for k in (axis if isinstance(axis, Sequence) else [axis])]
    if len(set(asked)) != len(asked):
        raise ArrayShapeError(f"an axis stands twice in {axis}")
    return asked


def _count(x: Array, axes: Sequence[int]) -> int:
    return math.prod(whole(x.shape[k]) for k in axes)


def _has_elements(x: Array, axes: Sequence[int], what: str) -> None:
    if not _count(x, axes):
        raise ArrayShapeError(f"{what} of no elements: the array has shape {told(x.shape)}")


_UFUNC = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def identity(kind: str, dtype: DType) -> Any:
    """Return what changes nothing in a reduction."""
    if kind in ("sum", "prod"):
        return dtype.numpy().type(kind == "prod")
    if dtype.is_bool:
        return np.bool_(kind == "min")
    if dtype.is_float:
        return dtype.numpy().type(-np.inf if kind == "max" else np.inf)
    limits = np.iinfo(dtype.numpy())
    return dtype.numpy().type(limits.min if kind == "max" else limits.max)


def accumulated(dtype: DType) -> DType:
    """Return what NumPy sums in: small integers and truth values in 64 bits."""
    if dtype.is_bool or (dtype.is_int and dtype.bits < 64):
        return dtype_of("uint64" if dtype.startswith("uint") else "int64")
    return dtype


def _asked(dtype: Any, default: DType) -> DType:
    return default if dtype is None else element_type(dtype)


def sum(
    a: Any, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Array:  # fmt: skip
    """`numpy.sum`."""
    x = lift(a)
    return _folded("sum", x, axis, keepdims, _asked(dtype, accumulated(x.dtype)), where, initial)


def prod(
    a: Any, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Array:  # fmt: skip
    """`numpy.prod`."""
    x = lift(a)
    return _folded("prod", x, axis, keepdims, _asked(dtype, accumulated(x.dtype)), where, initial)


def max(
    a: Any, axis: Axes = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Array:
    """`numpy.max`."""
    x = lift(a)
    if x.dtype.is_bool:
        return _extreme_truth("max", x, axis, keepdims, initial, where)
    return _folded("max", x, axis, keepdims, x.dtype, where, initial)


def min(
    a: Any, axis: Axes = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Array:
    """`numpy.min`."""
    x = lift(a)
    if x.dtype.is_bool:
        return _extreme_truth("min", x, axis, keepdims, initial, where)
    return _folded("min", x, axis, keepdims, x.dtype, where, initial)


def mean(
    a: Any, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Array:
    """`numpy.mean`."""
    x = lift(a)
    kind = _asked(dtype, x.dtype if x.dtype.is_float else dtype_of("float64"))
    if where is not True:
        total: Any = sum(x, axis, kind, keepdims=keepdims, where=where)
        made: Array = total / _chosen(x, axis, kind, keepdims, where)
        return made
    return _folded("mean", x, axis, keepdims, kind, True, None)


_mean = mean


def _chosen(x: Array, axis: Axes, kind: DType, keepdims: bool, where: Any) -> Array:
    """Return how many elements are chosen."""
    chosen = broadcast_to(where, broadcast([x.shape, lift(where).shape], "where"))
    return sum(chosen, axis, kind, keepdims=keepdims)


def var(
    a: Any, axis: Axes = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False,
    where: Any = True, correction: float | None = None, mean: Any = None,
) -> Array:  # fmt: skip
    """`numpy.var`; `correction` is another name of `ddof`, `mean` what is known already."""
    x = lift(a)
    kind = _asked(dtype, x.dtype if x.dtype.is_float else dtype_of("float64"))
    less = ddof if correction is None else correction
    known = _mean(x, axis, kind, keepdims=True, where=where) if mean is None else lift(mean)
    centred: Any = x - known
    squares: Any = sum(centred * centred, axis, kind, keepdims=keepdims, where=where)
    made: Array
    if where is not True:
        count: Any = _chosen(x, axis, kind, keepdims, where)
        made = squares / np.maximum(count - less, 0)
        return made
    left = _count(x, axes_of(axis, x.ndim)) - less
    if isinstance(left, Size):
        made = squares / left
        return made
    made = squares * (1.0 / left) if left > 0 else squares / 0.0
    return made


def std(
    a: Any, axis: Axes = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False,
    where: Any = True, correction: float | None = None, mean: Any = None,
) -> Array:  # fmt: skip
    """`numpy.std`; `correction` is another name of `ddof`, `mean` what is known already."""
    less = ddof if correction is None else correction
    squares: Any = var(a, axis, dtype, ddof=less, keepdims=keepdims, where=where, mean=mean)
    return root(squares)


def root(total: Any, power: float = 2) -> Array:
    """Return a root of a sum of powers: its gradient where all are 0 is 0.

    There is none at that point; 0 is in the middle of those around it.
    """
    found: Any = np.sqrt(total) if power == 2 else total ** (1 / power)
    if power > 0:  # others are infinite there
        found = np.where(total == 0, 0, found)
    return found  # type: ignore[no-any-return]


def any(a: Any, axis: Axes = None, *, keepdims: bool = False, where: Any = True) -> Array:
    """`numpy.any`: the largest truth."""
    return _extreme_truth("max", lift(a), axis, keepdims, False, where)


def all(a: Any, axis: Axes = None, *, keepdims: bool = False, where: Any = True) -> Array:
    """`numpy.all`: the smallest truth."""
    return _extreme_truth("min", lift(a), axis, keepdims, True, where)


def _extreme_truth(
    kind: str, x: Array, axis: Axes, keepdims: bool, initial: Any, where: Any
) -> Array:
    """Return the extremum of truth values, which are compared as numbers."""
    number = dtype_of("int32")
    numbers = Array(x.shape, number, lambda i: eq.cast(eq.cast(x.at(i), eq.BOOL), number))
    first = None if initial is None else int(bool(initial))
    if first is None or where is not True or not _count(x, axes_of(axis, x.ndim)):
        found = _folded(kind, numbers, axis, keepdims, number, where, first)
    else:
        first = None if first == (kind == "min") else first  # the identity changes nothing
        found = _folded(kind, numbers, axis, keepdims, number, True, first)
    return Array(found.shape, eq.BOOL, lambda i: eq.cast(found.at(i), eq.BOOL))


def _position(kind: str, ufunc: Callable[..., Array]) -> Callable[..., Array]:
    def run(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Array:
        x = lift(a) if axis is not None else reshape(a, -1)
        along = axis_of(axis or 0, x.ndim)
        _has_elements(x, [along], f"np.arg{kind}")
        best = ufunc(x, along, keepdims=True)
        size = int(x.shape[along])

        def first(condition: Callable[[Indices], Expr]) -> Array:
            def where(indices: Indices) -> Expr:
                return eq.where(condition(indices), indices[along], const(size))

            return fold("min", Array(x.shape, eq.INDEX, where), along, eq.INDEX)

        def met(indices: Indices) -> Expr:
            reduced = (*indices[:along], const(0), *indices[along + 1 :])
            return eq.make("eq", x.at(indices), best.at(reduced))

        found = first(met)
        if x.dtype.is_float:  # what is no number comes before every number
            none = first(lambda indices: eq.make("ne", x.at(indices), x.at(indices)))
            found = choose(none < size, none, found)
        if not keepdims:
            return found
        return expand_dims(found, along if axis is not None else range(lift(a).ndim))

    run.__name__ = run.__qualname__ = f"arg{kind}"
    run.__doc__ = f"`numpy.arg{kind}`: the smallest index at which the element is the {kind}."
    return run


argmax = _position("max", max)
argmin = _position("min", min)


def _known_position(kind: str, position: Callable[..., Array]) -> Callable[..., Array]:
    def run(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Array:
        x: Any = lift(a)
        if x.dtype.is_float:
            x = choose(x == x, x, -math.inf if kind == "max" else math.inf)
        return position(x, axis, keepdims=keepdims)

    run.__name__ = run.__qualname__ = f"nanarg{kind}"
    run.__doc__ = f"`numpy.nanarg{kind}`; 0 where there is no number, for which NumPy raises."
    return run


nanargmax = _known_position("max", argmax)
nanargmin = _known_position("min", argmin)


def logaddexp_reduce(a: Any, axis: Axes = 0, *, keepdims: bool = False) -> Array:
    """`numpy.logaddexp.reduce`: the logarithm of a sum of exponentials."""
    x: Any = lift(a)
    over = axes_of(axis, x.ndim)
    kind, _ = promoted("logaddexp", (x, x), (x, x))
    x = astype(x, kind[0]) if x.dtype != kind[0] else x
    if not _count(x, over):
        return _folded("max", x, axis, keepdims, x.dtype, True, -math.inf)
    top: Any = max(x, axis, keepdims=True)
    apart: Any = np.exp(x - top)
    total: Any = sum(apart, axis, keepdims=True)
    # an infinite maximum is the result
    made = choose(np.isinf(top), top, np.log(total) + top)
    return made if keepdims else squeeze(made, over)


def ptp(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """`numpy.ptp`: from the least to the largest."""
    made: Array = max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)
    return made


def count_nonzero(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """`numpy.count_nonzero`."""
    x: Any = lift(a)
    return sum(x != 0, axis, "int64", keepdims=keepdims)


def average(
    a: Any, axis: int | None = None, weights: Any = None, returned: bool = False, *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """`numpy.average`; with the sum of the weights beside it if `returned`."""
    x = lift(a)
    if weights is None:
        plain = mean(x, axis, keepdims=keepdims)
        count = _count(x, axes_of(axis, x.ndim))
        return (plain, broadcast_to(astype(lift(count), plain.dtype), plain.shape)) if returned \
            else plain  # fmt: skip
    w = lift(weights)
    if w.ndim != x.ndim:
        if w.ndim != 1 or axis is None:
            raise ArrayShapeError(f"np.average: weights of {w.ndim} dimensions for {x.ndim}")
        along = axis_of(axis, x.ndim)
        w = reshape(w, [-1 if k == along else 1 for k in range(x.ndim)])
    kind = common_type((x, w), (x, w))
    if not x.dtype.is_float:
        kind = dtype_of("float64")
    shape = broadcast([x.shape, w.shape], "np.average", (x, w))
    weight: Any = sum(broadcast_to(w, shape), axis, kind, keepdims=keepdims)
    made = sum(astype(x, kind) * astype(w, kind), axis, keepdims=keepdims) / weight
    return (made, weight) if returned else made


def without_nan(known: Callable[..., Array], name: str) -> Callable[..., Array]:
    """Return a reduction that leaves out what is not a number; it takes what `known` takes."""
    signature = inspect.signature(known)

    def run(*args: Any, **keywords: Any) -> Array:
        given = signature.bind(*args, **keywords).arguments
        x: Any = lift(given.pop("a"))
        if not x.dtype.is_float:
            return known(x, **given)
        asked = given.pop("where", True)
        is_number: Any = (x == x) if asked is True else (x == x) & lift(asked)
        over = {k: v for k, v in given.items() if k in ("axis", "keepdims")}
        if known in (max, min) and "initial" not in given:
            if asked is True:
                _has_elements(x, axes_of(given.get("axis"), x.ndim), f"np.{name}")
            given["initial"] = -math.inf if known is max else math.inf
            is_some: Any = any(is_number, **over)
        elif known in (var, std):
            less = given.get("correction", given.get("ddof", 0))
            is_some = sum(is_number, **over) > less
        else:
            return known(x, where=is_number, **given)
        return choose(is_some, known(x, where=is_number, **given), math.nan)

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"`numpy.{name}`."
    return run


NAN_FOLDS = {
    f"nan{known.__name__}": without_nan(known, f"nan{known.__name__}")
    for known in (sum, prod, max, min, mean, var, std)
}
