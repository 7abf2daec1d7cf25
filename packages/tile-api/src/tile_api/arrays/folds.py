"""Reductions: sums, extrema, means and what is defined by them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays import equations as eq
from tile_api.arrays.array import Array, Indices
from tile_api.arrays.dims import variable_of
from tile_api.arrays.elementwise import UFUNCS, apply, lift
from tile_api.arrays.equations import Expr, const
from tile_api.arrays.views import axis_of, expand_dims, reshape
from tile_api.frontend.source import calling_span
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import ArrayShapeError


def _of_nothing(kind: str, dtype: DType) -> Expr:
    """Return a reduction without elements, as NumPy has it."""
    if kind in ("max", "min"):
        raise ArrayShapeError(
            f"np.{kind} over a dimension of size 0, which has no such element",
            span=calling_span(),
            hint="give `initial`",
        )
    return const({"sum": 0, "prod": 1}.get(kind, math.nan), eq.computed_in(dtype))


Axes = int | Sequence[int] | None


def fold(kind: str, x: Array, axis: int, dtype: DType) -> Array:
    """Return a reduction over one axis, without the axis."""
    size = x.shape[axis]

    def at(indices: Indices) -> Expr:
        if size == 0:
            return _of_nothing(kind, dtype)
        taken = frozenset().union(*(i.free for i in indices))
        name = variable_of(size, taken)
        along = const(0) if size == 1 else eq.index(name, int(size))
        body = x.read_as(dtype, (*indices[:axis], along, *indices[axis:]))
        return body if size == 1 else eq.reduce(kind, name, int(size), body)

    return Array((*x.shape[:axis], *x.shape[axis + 1 :]), dtype, at)


def _folded(
    kind: str, a: Any, axis: Axes, keepdims: bool, dtype: DType, where: Any, initial: Any
) -> Array:
    x = lift(a)
    axes = range(x.ndim) if axis is None else [axis] if not isinstance(axis, Sequence) else axis
    over = sorted({axis_of(k, x.ndim) for k in axes}, reverse=True)
    if where is not True:
        x = apply(eq.where, "where", (where, x, _identity(kind, x.dtype)))
    for k in over:
        x = fold(kind, x, k, dtype)
    if initial is not None:
        x = apply(UFUNCS[_UFUNC[kind]], _UFUNC[kind], (x, initial))
    return expand_dims(x, sorted(over)) if keepdims and over else x


_UFUNC = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _identity(kind: str, dtype: DType) -> Any:
    if kind in ("sum", "prod"):
        return dtype.numpy().type(kind == "prod")
    if dtype.is_float:
        return dtype.numpy().type(-np.inf if kind == "max" else np.inf)
    limits = np.iinfo(dtype.numpy())
    return dtype.numpy().type(limits.min if kind == "max" else limits.max)


def _accumulated(dtype: DType) -> DType:
    """Return what NumPy sums in: small integers and truth values in 64 bits."""
    if dtype.is_bool or (dtype.is_int and dtype.bits < 64):
        return dtype_of("uint64" if dtype.startswith("uint") else "int64")
    return dtype


def _asked(dtype: Any, default: DType) -> DType:
    return default if dtype is None else dtype_of(str(np.dtype(dtype)))


def sum(
    a: Any, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Array:  # fmt: skip
    """`numpy.sum`."""
    x = lift(a)
    return _folded("sum", x, axis, keepdims, _asked(dtype, _accumulated(x.dtype)), where, initial)


def prod(
    a: Any, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False,
    initial: Any = None, where: Any = True,
) -> Array:  # fmt: skip
    """`numpy.prod`."""
    x = lift(a)
    return _folded("prod", x, axis, keepdims, _asked(dtype, _accumulated(x.dtype)), where, initial)


def max(
    a: Any, axis: Axes = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Array:
    """`numpy.max`."""
    x = lift(a)
    return _folded("max", x, axis, keepdims, x.dtype, where, initial)


def min(
    a: Any, axis: Axes = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Array:
    """`numpy.min`."""
    x = lift(a)
    return _folded("min", x, axis, keepdims, x.dtype, where, initial)


def mean(a: Any, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """`numpy.mean`."""
    x = lift(a)
    kind = _asked(dtype, x.dtype if x.dtype.is_float else dtype_of("float64"))
    return _folded("mean", x, axis, keepdims, kind, True, None)


def var(
    a: Any, axis: Axes = None, dtype: Any = None, *, ddof: int = 0, keepdims: bool = False
) -> Array:
    """`numpy.var`."""
    x = lift(a)
    kind = _asked(dtype, x.dtype if x.dtype.is_float else dtype_of("float64"))
    centred: Any = x - mean(x, axis, kind, keepdims=True)
    squares = _folded("sum", centred * centred, axis, keepdims, kind, True, None)
    axes = range(x.ndim) if axis is None else [axis] if not isinstance(axis, Sequence) else axis
    count = 1
    for k in axes:
        count *= int(x.shape[axis_of(k, x.ndim)])
    made: Array = squares * (1.0 / (count - ddof)) if count > ddof else squares / 0.0
    return made


def std(
    a: Any, axis: Axes = None, dtype: Any = None, *, ddof: int = 0, keepdims: bool = False
) -> Array:
    """`numpy.std`."""
    return apply(UFUNCS["sqrt"], "sqrt", (var(a, axis, dtype, ddof=ddof, keepdims=keepdims),))


def any(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """`numpy.any`: the largest truth."""
    return _truth("max", a, axis, keepdims)


def all(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """`numpy.all`: the smallest truth."""
    return _truth("min", a, axis, keepdims)


def _truth(kind: str, a: Any, axis: Axes, keepdims: bool) -> Array:
    x = lift(a)
    numbers = Array(
        x.shape, dtype_of("int32"), lambda i: eq.cast(eq.cast(x.at(i), eq.BOOL), dtype_of("int32"))
    )
    found = _folded(kind, numbers, axis, keepdims, numbers.dtype, True, None)
    return Array(found.shape, eq.BOOL, lambda i: eq.cast(found.at(i), eq.BOOL))


def _position(kind: str, ufunc: Callable[..., Array]) -> Callable[..., Array]:
    def run(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Array:
        x = lift(a) if axis is not None else reshape(a, -1)
        along = axis_of(axis or 0, x.ndim)
        best = ufunc(x, along, keepdims=True)
        size = int(x.shape[along])

        def where(indices: Indices) -> Expr:
            met = eq.make(
                "eq", x.at(indices), best.at((*indices[:along], const(0), *indices[along + 1 :]))
            )
            return eq.where(met, indices[along], const(size))

        found = fold("min", Array(x.shape, eq.INDEX, where), along, eq.INDEX)
        return expand_dims(found, along) if keepdims else found

    run.__name__ = run.__qualname__ = f"arg{kind}"
    run.__doc__ = f"`numpy.arg{kind}`: the smallest index at which the element is the {kind}."
    return run


argmax = _position("max", max)
argmin = _position("min", min)


def logaddexp_reduce(a: Any, axis: int = 0, *, keepdims: bool = False) -> Array:
    """`numpy.logaddexp.reduce`: the logarithm of a sum of exponentials."""
    x: Any = lift(a)
    top: Any = max(x, axis, keepdims=True)
    made: Any = np.log(sum(np.exp(x - top), axis, keepdims=True)) + top
    along = axis_of(axis, x.ndim)
    return made if keepdims else reshape(made, [n for k, n in enumerate(x.shape) if k != along])
