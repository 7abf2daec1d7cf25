"""Arrays out of nothing.

NumPy asks nobody when a function takes no array: ``np.arange(n)`` would come back as numbers, and
a mask as a table in memory. Inside of a captured function `np` is a namespace in which these
functions are captured too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import apply, astype, broadcast, element_type, lift, ramp
from tile_api.arrays.capturing.joins import at_least, stack
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.capturing.views import broadcast_to, reshape, sizes_of
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import Dim
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.sizes import Size
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import ArrayShapeError


def _dtype(dtype: Any, default: str) -> DType:
    return dtype_of(default) if dtype is None else element_type(dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    """`numpy.arange`."""
    first, last = (0, start) if stop is None else (start, stop)
    if first == 0 and step == 1 and isinstance(last, Dim):
        count: int = last
    elif isinstance(last - first, Size):
        count = max(0, -((first - last) // step))
    else:
        count = max(0, math.ceil((last - first) / step))
    if dtype is None:
        dtype = np.arange(first, first, step + 0 * last).dtype
    return ramp((count,), 0, first, step, element_type(dtype))


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None
) -> Array:
    """`numpy.linspace` between numbers."""
    start, stop = float(start), float(stop)
    step = (stop - start) / max(1, num - 1 if endpoint else num)
    exact = ramp((num,), 0, start, step, dtype_of("float64"))
    kind = _dtype(dtype, "float64")
    if not kind.is_float:
        exact = apply(UFUNCS["floor"], "floor", (exact,))
    return astype(exact, kind)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """`numpy.full`."""
    value = lift(fill_value)
    sizes = sizes_of(shape)
    kind = value.dtype if dtype is None else _dtype(dtype, "float64")
    whole = astype(value, kind) if value.dtype != kind else value
    return broadcast_to(whole, sizes)


def empty(shape: Any, dtype: Any = None) -> Array:
    """`numpy.empty`: what nothing is written to is zero."""
    return zeros(shape, dtype)


def zeros(shape: Any, dtype: Any = None) -> Array:
    """`numpy.zeros`."""
    return full(shape, 0, _dtype(dtype, "float64"))


def ones(shape: Any, dtype: Any = None) -> Array:
    """`numpy.ones`."""
    return full(shape, 1, _dtype(dtype, "float64"))


def zeros_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Array:
    """`numpy.zeros_like`."""
    return full_like(a, 0, dtype, shape=shape)


def ones_like(a: Any, dtype: Any = None, *, shape: Any = None) -> Array:
    """`numpy.ones_like`."""
    return full_like(a, 1, dtype, shape=shape)


def full_like(a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> Array:
    """`numpy.full_like`."""
    x = lift(a)
    return full(x.shape if shape is None else shape, fill_value, _dtype(dtype, str(x.dtype)))


def identity(n: int, dtype: Any = None) -> Array:
    """`numpy.identity`."""
    return eye(n, dtype=dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """`numpy.eye`."""
    kind = _dtype(dtype, "float64")

    def at(indices: Indices) -> Expr:
        diagonal = eq.add(indices[0], const(k))
        one, none = (const(x, eq.computed_in(kind)) for x in (1, 0))
        return eq.where(eq.make("eq", indices[1], diagonal), one, none)

    return Array((N, N if M is None else M), kind, at)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """`numpy.tri`."""
    kind = _dtype(dtype, "float64")

    def at(indices: Indices) -> Expr:
        kept = eq.make("le", indices[1], eq.add(indices[0], const(k)))
        return (
            eq.cast(kept, kind)
            if kind.is_bool
            else eq.where(kept, const(1, eq.computed_in(kind)), const(0, eq.computed_in(kind)))
        )

    return Array((N, N if M is None else M), kind, at)


def _band(m: Any, k: int, *, below: bool) -> Array:
    x = lift(m)
    if not x.ndim:
        raise ArrayShapeError("a triangle of no dimensions")
    if x.ndim == 1:
        x = broadcast_to(x, (x.shape[0], x.shape[0]))

    def at(indices: Indices) -> Expr:
        row, column = indices[-2:]
        diagonal = eq.add(row, const(k))
        kept = eq.make("le", column, diagonal) if below else eq.make("le", diagonal, column)
        found = x.at(indices)
        return eq.where(kept, found, const(0, found.dtype))

    return Array(x.shape, x.dtype, at)


def tril(m: Any, k: int = 0) -> Array:
    """`numpy.tril`."""
    return _band(m, k, below=True)


def triu(m: Any, k: int = 0) -> Array:
    """`numpy.triu`."""
    return _band(m, k, below=False)


def array(object: Any, dtype: Any = None) -> Any:
    """`numpy.array` and `numpy.asarray`: of captured arrays a stack, of numbers NumPy's own."""
    if isinstance(object, (list, tuple)) and holds_arrays(object):
        object = stack([array(x) for x in object])
    if isinstance(object, Array):
        return object if dtype is None else astype(object, dtype)
    return np.array(object, dtype)


def holds_arrays(given: Any) -> bool:
    """Tell whether there is a captured array in nested lists."""
    if isinstance(given, (list, tuple)):
        return any(map(holds_arrays, given))
    return isinstance(given, Array)


def meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False) -> tuple[Array, ...]:
    """`numpy.meshgrid`."""
    rank = len(xi)
    shapes = [[-1 if k == at else 1 for k in range(rank)] for at in range(rank)]
    if indexing == "xy" and rank > 1:
        shapes[0], shapes[1] = shapes[1], shapes[0]
    wide = [reshape(x, shape) for x, shape in zip(xi, shapes, strict=True)]
    if sparse:
        return tuple(wide)
    whole = broadcast([x.shape for x in wide], "np.meshgrid", wide)
    return tuple(broadcast_to(x, whole) for x in wide)


def indices(dimensions: Sequence[int], dtype: Any = int) -> Array:
    """`numpy.indices`."""
    return stack(meshgrid(*(arange(n, dtype=dtype) for n in dimensions), indexing="ij"))


CREATED = {
    f.__name__: f
    for f in (
        arange, linspace, full, zeros, ones, empty, zeros_like, ones_like, full_like, eye, identity,
        tri, tril, triu, array, meshgrid, indices,
    )
}  # fmt: skip
CREATED |= {"empty_like": zeros_like}
CREATED |= {
    "asarray": array,
    "asanyarray": array,
    "ascontiguousarray": lambda a, dtype=None: at_least(array(a, dtype), 1),
    "asfortranarray": lambda a, dtype=None: at_least(array(a, dtype), 1),
}
