"""Arrays out of nothing, and the namespace that stands for NumPy inside of a captured function.

NumPy asks nobody when a function takes no array: ``np.arange(n)`` would come back as numbers, and
a mask as a table in memory. Inside of a captured function `np` is `NAMESPACE`: these functions
are captured too, and everything else is NumPy's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_api.arrays import equations as eq
from tile_api.arrays.array import Array, Indices
from tile_api.arrays.elementwise import lift, ramp
from tile_api.arrays.equations import Expr, const
from tile_core.dtypes import DType, dtype_of


def _dtype(dtype: Any, default: str) -> DType:
    return dtype_of(default if dtype is None else str(np.dtype(dtype)))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    """`numpy.arange`."""
    first, last = (0, start) if stop is None else (start, stop)
    is_float = any(isinstance(x, float) for x in (first, last, step))
    whole = (first, step) == (0, 1) and not is_float
    count = last if whole and last > 0 else max(0, math.ceil((last - first) / step))
    return ramp((count,), 0, first, step, _dtype(dtype, "float64" if is_float else "int64"))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Array:
    """`numpy.full`."""
    value = lift(fill_value)
    sizes = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    kind = value.dtype if dtype is None else _dtype(dtype, "float64")
    if value.ndim:
        from tile_api.arrays.views import broadcast_to

        value = broadcast_to(value, sizes)
        return Array(sizes, kind, lambda indices: value.read_as(kind, indices))
    return Array(sizes, kind, lambda indices: value.read_as(kind, ()))


def zeros(shape: Any, dtype: Any = None) -> Array:
    """`numpy.zeros`."""
    return full(shape, 0, _dtype(dtype, "float64").numpy())


def ones(shape: Any, dtype: Any = None) -> Array:
    """`numpy.ones`."""
    return full(shape, 1, _dtype(dtype, "float64").numpy())


def zeros_like(a: Any, dtype: Any = None) -> Array:
    """`numpy.zeros_like`."""
    return full_like(a, 0, dtype)


def ones_like(a: Any, dtype: Any = None) -> Array:
    """`numpy.ones_like`."""
    return full_like(a, 1, dtype)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Array:
    """`numpy.full_like`."""
    x = lift(a)
    return full(x.shape, fill_value, _dtype(dtype, str(x.dtype)).numpy())


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


CREATED = {
    f.__name__: f
    for f in (arange, full, zeros, ones, zeros_like, ones_like, full_like, eye, tri, tril, triu)
}


class Namespace:
    """NumPy, with functions that make arrays captured."""

    def __getattr__(self, name: str) -> Any:
        """Return what is captured under a name, else NumPy's own."""
        return CREATED.get(name) or getattr(np, name)


NAMESPACE = Namespace()
