"""Functions of NumPy that are short programs of others."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.accumulations import cumsum
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import astype, broadcast, lift, where
from tile_api.arrays.capturing.factorisations import inv
from tile_api.arrays.capturing.folds import all, any
from tile_api.arrays.capturing.indexing import take
from tile_api.arrays.capturing.joins import concatenate, diff, stack
from tile_api.arrays.capturing.products import matmul
from tile_api.arrays.capturing.views import (
    axis_of,
    broadcast_to,
    expand_dims,
    moveaxis,
    reshape,
    transpose,
)
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

MOST_RUNS = 8


def sinc(x: Any) -> Array:
    """`numpy.sinc`: ``sin(pi x) / (pi x)``."""
    turned: Any = lift(x) * np.pi
    kind = turned.dtype.numpy()
    least = float(np.finfo(kind).eps) if kind.kind == "f" else 1e-20
    angle: Any = where(turned == 0, least, turned)
    made: Array = np.sin(angle) / angle
    return made


def unwrap(
    p: Any, discont: float | None = None, axis: int = -1, *, period: float = math.tau
) -> Array:
    """`numpy.unwrap`: jumps of more than half a period become their complements."""
    x: Any = lift(p)
    along = axis_of(axis, x.ndim)
    steps: Any = diff(x, axis=along)
    half, is_halved = period / 2, True
    if isinstance(period, int) and not x.dtype.is_float:
        half, is_halved = period // 2, period % 2 == 0
    near: Any = (steps + half) % period - half
    if is_halved:
        near = where((near == -half) & (steps > 0), half, near)
    mended: Any = where(
        np.abs(steps) < (period / 2 if discont is None else discont), 0, near - steps
    )
    first, rest = _part(x, along, 0, 1), _part(x, along, 1, None)
    moved: Any = rest + astype(cumsum(mended, along), mended.dtype)
    return concatenate([astype(first, mended.dtype), moved], along)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """`numpy.cross` of vectors of three dimensions, or of two, which lie in the plane."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    counts = [int(z.shape[-1]) for z in (x, y)]
    if not {*counts} <= {2, 3}:
        raise ArrayShapeError(
            f"np.cross: vectors of {counts[0]} and {counts[1]} dimensions, not of 3 or 2"
        )
    p, q = ([z[..., k] for k in range(n)] for z, n in zip((x, y), counts, strict=True))
    upright: Any = p[0] * q[1] - p[1] * q[0]
    if counts == [2, 2]:  # the other parts are 0
        return lift(upright)
    if counts == [2, 3]:
        parts = [p[1] * q[2], -(p[0] * q[2]), upright]
    elif counts == [3, 2]:
        parts = [-(p[2] * q[1]), p[2] * q[0], upright]
    else:
        parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], upright]
    return moveaxis(stack(parts, -1), -1, axisc)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """`numpy.vander`: powers of each element."""
    values = lift(x)
    if values.ndim != 1:
        raise ArrayShapeError(f"np.vander of {values.ndim} dimensions, not of one")
    kind = np.promote_types(values.dtype.numpy(), int)
    powers = np.arange(int(values.shape[0]) if N is None else N)
    wide: Any = expand_dims(astype(values, str(kind)), 1)
    made: Array = wide ** (powers if increasing else powers[::-1])
    return made


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False
) -> Array:
    """`numpy.isin`: whether each element is one of others."""
    each: Any = expand_dims(element, lift(element).ndim)
    others: Any = reshape(test_elements, -1)
    found: Any = any(each == others, -1)
    return lift(~found if invert else found)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """`numpy.ediff1d`: differences of neighbours of all elements in a row."""
    steps = diff(reshape(ary, -1))
    ends = [None if x is None else astype(reshape(x, -1), steps.dtype) for x in (to_begin, to_end)]
    parts = [x for x in (ends[0], steps, ends[1]) if x is not None]
    return concatenate(parts) if len(parts) > 1 else steps


def delete(arr: Any, obj: Any, axis: int | None = None) -> Array:
    """`numpy.delete` at indices that are known when the function is captured."""
    x, along = _along(arr, axis)
    return _in_order(x, np.delete(np.arange(int(x.shape[along])), _places(obj, "delete")), along)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """`numpy.insert` at indices that are known when the function is captured."""
    x, along = _along(arr, axis)
    places = _places(obj, "insert")
    new = astype(lift(values), x.dtype)
    new = reshape(new, [*[1] * (x.ndim - new.ndim), *new.shape])
    size = int(x.shape[along])
    if isinstance(places, slice):
        places = np.arange(size)[places]
    elif np.asarray(places).dtype == bool:
        places = np.flatnonzero(places)
    if np.ndim(places) == 0:
        new = moveaxis(new, 0, along)
    count = int(new.shape[along]) if np.ndim(places) == 0 else np.size(places)
    new = broadcast_to(new, [count if k == along else n for k, n in enumerate(x.shape)])
    order = np.insert(np.arange(size), places, size + np.arange(count))
    return _in_order(concatenate([x, new], along), order, along)


def _along(arr: Any, axis: int | None) -> tuple[Array, int]:
    x = lift(arr)
    return (reshape(x, -1), 0) if axis is None else (x, axis_of(axis, x.ndim))


def _part(x: Array, axis: int, start: int, stop: int | None) -> Any:
    return x[tuple([*[slice(None)] * axis, slice(start, stop)])]


def _in_order(x: Array, order: Any, axis: int) -> Array:
    """Return the elements at indices: what lies in a few runs is joined, not looked up."""
    runs = np.split(order, np.flatnonzero(np.diff(order) != 1) + 1)
    if not order.size or len(runs) > MOST_RUNS:
        return take(x, order, axis)
    return concatenate([_part(x, axis, int(r[0]), int(r[-1]) + 1) for r in runs], axis)


def _places(obj: Any, name: str) -> Any:
    if isinstance(obj, Array):
        raise UnknownArrayFunction(
            f"np.{name} at indices that are known only when the kernel runs",
            hint="np.where keeps the shape; np.take reads at indices",
        )
    return obj


def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    """`numpy.broadcast_arrays`."""
    arrays = [lift(x) for x in args]
    shape = broadcast([x.shape for x in arrays], "np.broadcast_arrays", arrays)
    return tuple(broadcast_to(x, shape) for x in arrays)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """`numpy.array_equal`: whether shapes and all elements are equal."""
    x, y = (lift(a) for a in (a1, a2))
    if tuple(x.shape) != tuple(y.shape):
        return lift(False)
    met: Any = x == y
    if equal_nan and x.dtype.is_float and y.dtype.is_float:
        met = met | ((x != x) & (y != y))
    return all(met)


def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """`numpy.rollaxis`: an axis goes before the one that is `start` now."""
    x = lift(a)
    along = axis_of(axis, x.ndim)
    order = [k for k in range(x.ndim) if k != along]
    end = start + x.ndim if start < 0 else start
    order.insert(end - 1 if end > along else end, along)
    return transpose(x, order)


def unravel_index(indices: Any, shape: Any) -> tuple[Array, ...]:
    """`numpy.unravel_index`: the indices in each dimension of places in a row."""
    rest: Any = astype(lift(indices), "int64")
    made: list[Any] = []
    for n in reversed([int(n) for n in ((shape,) if isinstance(shape, int) else shape)]):
        made.append(rest % n)
        rest = rest // n
    return tuple(made[::-1])


def multi_dot(arrays: Sequence[Any]) -> Array:
    """`numpy.linalg.multi_dot`: in its order, that of the fewest multiplications.

    Small integers wrap around in products between, so that the order is part of the meaning.
    """
    parts = [*map(lift, arrays)]
    heights = [int(x.shape[0]) if x.ndim > 1 or k else 1 for k, x in enumerate(parts)]
    sizes = [*heights, int(parts[-1].shape[-1]) if parts[-1].ndim > 1 else 1]

    @functools.cache
    def best(first: int, last: int) -> tuple[int, int]:
        """Return the multiplications of the parts up to and with the last, and the first's end."""
        ways = (
            (best(first, k)[0] + best(k + 1, last)[0]
             + sizes[first] * sizes[k + 1] * sizes[last + 1], k)
            for k in range(first, last)
        )  # fmt: skip
        return min(ways, default=(0, first))

    def product(first: int, last: int) -> Array:
        if first == last:
            return parts[first]
        end = best(first, last)[1]
        return matmul(product(first, end), product(end + 1, last))

    return product(0, len(parts) - 1)


def matrix_power(a: Any, n: int) -> Array:
    """`numpy.linalg.matrix_power`."""
    x = lift(a)
    if not isinstance(n, (int, np.integer)):
        raise UnknownArrayFunction(
            f"np.linalg.matrix_power of the power {n!r}", hint="powers are whole numbers"
        )
    if n < 0:
        return matrix_power(inv(x), -n)
    if not n:
        return astype(broadcast_to(np.eye(int(x.shape[-1])), x.shape), x.dtype)
    if n == 1:
        return x
    half = matrix_power(x, n // 2)
    square = matmul(half, half)
    return matmul(square, x) if n % 2 else square
