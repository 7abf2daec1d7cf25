"""Sorted rows: the first few by one extremum after the other, whole rows by a network.

Short rows, and those within a step of another recurrence, are sorted by ranks: each element goes
to the place that the number of those before it is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import lift
from tile_api.arrays.capturing.sorted_positions import positions
from tile_api.arrays.capturing.views import axis_of, moveaxis, reshape
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.expressions import INDEX, Expr, Indices, const, make
from tile_api.arrays.equations.recurrence import DEPTH
from tile_api.arrays.equations.sorting_network import steps_of_network
from tile_api.arrays.reductions.state import identity_of
from tile_core.dtypes import dtype_of
from tile_core.errors import ArrayShapeError

MOST_EXTREMA = 32
"""Elements from an end of a row that are found one after the other."""
FEW_EXTREMA = 8
"""So many are, even where they are half of the row: more are as much work as all ranks."""


FEWEST_IN_NETWORK = 49
"""Shorter rows are sorted by ranks."""


def sort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Array:
    """`numpy.sort`; it is always stable."""
    return _sorted(a, axis, lambda x: x.dtype, lambda value, position: value)


def argsort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Array:
    """`numpy.argsort`; it is always stable."""
    return _sorted(a, axis, lambda x: INDEX, lambda value, position: position)


def partition(a: Any, kth: int | Sequence[int], axis: int | None = -1) -> Array:
    """`numpy.partition`: both parts are sorted, too."""
    _check(a, kth, axis)
    return sort(a, axis)


def argpartition(a: Any, kth: int | Sequence[int], axis: int | None = -1) -> Array:
    """`numpy.argpartition`: both parts are sorted, too."""
    _check(a, kth, axis)
    return argsort(a, axis)


def _check(a: Any, kth: int | Sequence[int], axis: int | None) -> None:
    x = lift(a)
    size = x.size if axis is None else x.shape[axis_of(axis, x.ndim)]
    for k in kth if isinstance(kth, Sequence) else (kth,):
        if x.size and not -size <= k < size:
            raise ArrayShapeError(f"np.partition: element {k} of {int(size)}")


def _sorted(
    a: Any, axis: int | None, dtype: Callable[[Array], Any], chosen: Callable[[Expr, Expr], Expr]
) -> Array:
    """Return values, or positions, of elements in ascending order."""
    x = lift(a) if axis is not None else reshape(a, -1)
    along = axis_of(-1 if axis is None else axis, x.ndim)
    rows = moveaxis(x, along, -1)
    size = int(rows.shape[-1])
    sorted_positions = functools.cache(lambda: positions(rows))
    is_in_step = DEPTH.get() > 1  # where no other recurrence goes through what is carried

    def at(indices: Indices) -> Expr:
        *row, place = indices
        low, high = _range(place, size)
        low, high = max(low, 0), min(high, size)
        if size < 2 or low >= high:  # nothing is read of an empty part
            return chosen(rows.at((*row, const(0))), const(0))
        count = min(high, size - low)
        is_short = size < FEWEST_IN_NETWORK or is_in_step
        most = FEW_EXTREMA if 2 * count >= size else MOST_EXTREMA
        if not is_short:  # two sweeps are as much work as a step
            most = min(most, steps_of_network(size) // 2)
        if count > most:
            if is_short:
                return _by_rank(rows, row, place, chosen)
            position = sorted_positions()(row, place)
            return chosen(rows.at((*row, position)), position)
        if high <= size - low:
            found = _extrema(rows, row, high, is_last=False)
            return _picked(place, dict(enumerate(chosen(*f) for f in found)), low)
        found = _extrema(rows, row, size - low, is_last=True)
        return _picked(place, {size - 1 - k: chosen(*f) for k, f in enumerate(found)}, low)

    return moveaxis(Array(rows.shape, dtype(x), at), -1, along)


def _range(place: Expr, size: int) -> tuple[int, int]:
    """Return between which numbers an index of a dimension is."""
    match place.op:
        case "const":
            return int(place.value), int(place.value) + 1
        case "index":
            return 0, int(place.value[1])
        case "add":
            (a, b), (c, d) = (_range(arg, size) for arg in place.args)
            return a + c, b + d - 1
        case "multiply" if place.args[0].op == "const":
            step, (a, b) = int(place.args[0].value), _range(place.args[1], size)
            ends = step * a, step * (b - 1)
            return min(ends), max(ends) + 1
    return 0, size


def _picked(place: Expr, values: dict[int, Expr], low: int) -> Expr:
    """Return the value at a place."""
    (_, made), *rest = sorted((k, v) for k, v in values.items() if k >= low)[::-1]
    for k, value in rest:
        made = eq.where(eq.compared("le", place, const(k)), value, made)
    return made


def _extrema(
    x: Array, row: Sequence[Expr], count: int, *, is_last: bool
) -> list[tuple[Expr, Expr]]:
    """Return the least elements with their positions, or the largest from the last one on.

    Each is the least of those that come after the one before; equal ones in their order.
    """
    size, name = int(x.shape[-1]), _variable(x, row)
    n = eq.index(name, size)
    y = x.at((*row, n))
    y = eq.cast(y, dtype_of("int32")) if y.dtype.is_bool else y
    kind, beyond = ("max", 0) if is_last else ("min", 2 * size)
    nothing = const(identity_of(kind, y.dtype, is_infinite=True), y.dtype)
    key: Expr = n
    if y.dtype.is_float:  # what is no number is last, after infinity
        is_number = make("eq", y, y)
        key = eq.add(n, eq.where(is_number, const(0), const(size)))
        y = eq.where(is_number, y, const(math.inf, y.dtype))
    found: list[tuple[Expr, Expr]] = []
    left: Expr | None = None
    for _ in range(count):
        value = eq.reduce(kind, name, size, y if left is None else eq.where(left, y, nothing))
        same = make("eq", y, value)
        hit = same if left is None else make("and", left, same)
        at = eq.reduce(kind, name, size, eq.where(hit, key, const(beyond)))
        if y.dtype.is_float:
            is_none = make("le", const(size), at)
            position = eq.where(is_none, eq.subtract(at, const(size)), at)
            found.append((eq.where(is_none, const(math.nan, y.dtype), value), position))
        else:
            found.append((value, at))
        order = [(y, value), (key, at)] if is_last else [(value, y), (at, key)]
        further, later = (make("lt", *pair) for pair in order)
        left = make("or", further, make("and", same, later))
    if x.dtype.is_bool:
        return [(eq.cast(value, x.dtype), position) for value, position in found]
    return found


def _by_rank(
    x: Array, row: Sequence[Expr], place: Expr, chosen: Callable[[Expr, Expr], Expr]
) -> Expr:
    """Return what has the rank `place`: the number of elements that come before it."""
    size, free = int(x.shape[-1]), [*row, place]
    name = _variable(x, free)
    n = eq.index(name, size)
    other = eq.index(_variable(x, [*free, n]), size)
    mine, theirs = x.at((*row, n)), x.at((*row, other))
    before = make("or", _precedes(theirs, mine), make("and", _are_same(mine, theirs),
                  make("lt", other, n)))  # fmt: skip
    rank = eq.reduce("sum", other.value[0], size, eq.cast(before, dtype_of("int32")))
    value = chosen(mine, n)
    wide = dtype_of("int32") if value.dtype.bits < 32 else value.dtype
    is_here = make("eq", eq.cast(rank, INDEX), place)
    body = eq.where(is_here, eq.cast(value, wide), const(0, wide))
    return eq.cast(eq.reduce("sum", name, size, body), value.dtype)


def _precedes(x: Expr, y: Expr) -> Expr:
    """Tell whether `x` is less than `y`; what is no number is last."""
    if not x.dtype.is_float:
        return make("lt", x, y) if not x.dtype.is_bool else make("and", make("not", x), y)
    return make("or", make("lt", x, y), make("and", make("eq", x, x), make("ne", y, y)))


def _are_same(x: Expr, y: Expr) -> Expr:
    same = make("eq", x, y)
    if not x.dtype.is_float:
        return same
    return make("or", same, make("and", make("ne", x, x), make("ne", y, y)))


def _variable(x: Array, free: Sequence[Expr]) -> str:
    return variable_of(x.shape[-1], frozenset().union(*(i.free for i in free)))
