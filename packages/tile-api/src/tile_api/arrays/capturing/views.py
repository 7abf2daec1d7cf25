"""Views: transposes, reshapes and their like are arithmetic of indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index as as_int
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import broadcast, lift, spread
from tile_api.arrays.capturing.misfits import misfit
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import Dim
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.sizes import whole
from tile_core.errors import ArrayShapeError, ElementUnknown

_ZERO = const(0)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises
    ------
    ArrayShapeError
        If there is no such axis.
    """
    try:
        axis = as_int(axis)
    except TypeError:
        raise ArrayShapeError(
            f"an axis of type {type(axis).__name__}",
            hint=f"axes are whole numbers from {-rank} to {rank - 1}" if rank else "it has none",
        ) from None
    if not -rank <= axis < rank:
        raise ArrayShapeError(
            f"axis {axis} of an array of {rank} dimensions",
            hint=f"axes go from {-rank} to {rank - 1}" if rank else "it has none",
        )
    return axis % rank


def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """`numpy.transpose`."""
    return _transposed(lift(a), axes)


def _transposed(x: Array, axes: Sequence[int] | None) -> Array:
    order = range(x.ndim)[::-1] if axes is None else [axis_of(k, x.ndim) for k in axes]
    if sorted(order) != list(range(x.ndim)):
        raise ArrayShapeError(
            f"np.transpose: axes {tuple(axes or ())} do not name each of {x.ndim} dimensions once"
        )

    def at(indices: Indices) -> Expr:
        back: list[Expr] = [_ZERO] * x.ndim
        for k, axis in enumerate(order):
            back[axis] = indices[k]
        return x.at(tuple(back))

    return Array([x.shape[k] for k in order], x.dtype, at)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """`numpy.swapaxes`."""
    x = lift(a)
    order = list(range(x.ndim))
    one, other = axis_of(axis1, x.ndim), axis_of(axis2, x.ndim)
    order[one], order[other] = other, one
    return transpose(x, order)


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """`numpy.moveaxis`."""
    x = lift(a)
    sources = [axis_of(k, x.ndim) for k in _listed(source)]
    targets = [axis_of(k, x.ndim) for k in _listed(destination)]
    order = [k for k in range(x.ndim) if k not in sources]
    for target, moved in sorted(zip(targets, sources, strict=True)):
        order.insert(target, moved)
    return transpose(x, order)


def _listed(axes: int | Sequence[int]) -> list[int]:
    return [as_int(axes)] if not isinstance(axes, Sequence) else [as_int(k) for k in axes]


def sizes_of(shape: Any) -> list[int]:
    """Return the sizes of a shape, which is a number or several; `Dim` stays."""
    given = list(shape) if isinstance(shape, (Sequence, np.ndarray)) else [shape]
    try:
        return [size if isinstance(size, int) else as_int(size) for size in given]
    except TypeError as error:
        if isinstance(error, ElementUnknown):
            raise
        raise ArrayShapeError(f"{shape!r} is no shape", hint="shapes are whole numbers") from None


def reshape(a: Any, shape: int | Sequence[int]) -> Array:
    """`numpy.reshape`, in C order."""
    x = lift(a)
    sizes = sizes_of(shape)
    if sizes.count(-1) == 1:
        known = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = x.size // known if known else 0
    if math.prod(sizes) != x.size or any(n < 0 for n in sizes):
        raise misfit(
            "np.reshape", [x.shape, sizes],
            f"have {x.size} and {math.prod(map(int, sizes))} elements", arrays=(x,),
        )  # fmt: skip
    if not x.size:
        return Array(sizes, x.dtype, lambda indices: x.at((_ZERO,) * x.ndim))
    wide, old = [n for n in sizes if n != 1], [n for n in x.shape if n != 1]
    if wide == old:  # only dimensions of size 1 come or go

        def same(indices: Indices) -> Expr:
            live: list[Expr] = [i for i, n in zip(indices, sizes, strict=True) if n != 1][::-1]
            return x.at(tuple(_ZERO if n == 1 else live.pop() for n in x.shape))

        named = iter(old)
        return Array([1 if n == 1 else next(named) for n in sizes], x.dtype, same)

    def at(indices: Indices) -> Expr:
        return x.at(reindexed(indices, sizes, x.shape))

    return Array(_with_names(sizes, x.shape), x.dtype, at)


def _with_names(new: Sequence[int], old: Sequence[int]) -> list[int]:
    """Return a shape in which dimensions that stay what they were remember it."""
    starts = {math.prod(old[:k]): n for k, n in enumerate(old) if n != 1}
    found = [starts.get(math.prod(new[:k]), n) for k, n in enumerate(new)]
    return [
        n if isinstance(n, Dim) or n == 1 or was != n else was
        for n, was in zip(new, found, strict=True)
    ]


def reindexed(indices: Indices, new: Sequence[int], old: Sequence[int]) -> Indices:
    """Return indices into `old`, group by group: dimensions whose products agree stay apart."""
    made: list[Expr] = []
    new_at = old_at = 0
    while old_at < len(old):
        to, others = new_at, old_at + 1
        mine, theirs = 1, whole(old[old_at])
        while mine != theirs or (to < len(new) and to == new_at):
            if mine < theirs or to == new_at:
                mine, to = mine * whole(new[to]), to + 1
            else:
                theirs, others = theirs * whole(old[others]), others + 1
        made += _of_group(indices[new_at:to], new[new_at:to], old[old_at:others])
        new_at, old_at = to, others
    return tuple(made)


def _of_group(indices: Indices, new: Sequence[int], old: Sequence[int]) -> list[Expr]:
    line: Expr = _ZERO
    for at, size in zip(indices, new, strict=True):
        line = eq.add(eq.multiply(const(whole(size)), line), at)
    if len(old) == 1:
        return [line]
    made, step = [], math.prod(old)
    for k, size in enumerate(old):
        step //= whole(size)
        part = eq.integer_part("floordiv", line, const(step))
        made.append(part if k == 0 else eq.integer_part("mod", part, const(whole(size))))
    return made


def expand_dims(a: Any, axis: int | Sequence[int]) -> Array:
    """`numpy.expand_dims`."""
    x = lift(a)
    axes = _listed(axis)
    rank = x.ndim + len(axes)
    added = {axis_of(k, rank) for k in axes}
    live = iter(x.shape)
    return reshape(x, [1 if k in added else next(live) for k in range(rank)])


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Array:
    """`numpy.squeeze`."""
    x = lift(a)
    gone = {k for k, n in enumerate(x.shape) if n == 1}
    if axis is not None:
        asked = {axis_of(k, x.ndim) for k in _listed(axis)}
        if not asked <= gone:
            wide = min(asked - gone)
            raise ArrayShapeError(f"np.squeeze: axis {wide} has {int(x.shape[wide])} elements")
        gone = asked
    return reshape(x, [n for k, n in enumerate(x.shape) if k not in gone])


def broadcast_to(array: Any, shape: int | Sequence[int]) -> Array:
    """`numpy.broadcast_to`."""
    x = lift(array)
    sizes = sizes_of(shape)
    made = broadcast([x.shape, sizes], "np.broadcast_to", (x,))
    if len(made) != len(sizes) or any(a != b for a, b in zip(made, sizes, strict=True)):
        raise misfit("np.broadcast_to", [x.shape, sizes], "do not fit", arrays=(x,))
    return Array(made, x.dtype, lambda indices: x.at(spread(x, indices)))


def whole_number(given: Any, what: str) -> int:
    """Return how often or how much, a number of 0 or more."""
    try:
        number = as_int(given)
    except TypeError:
        raise ArrayShapeError(f"{what} by {type(given).__name__}: it takes a number here") from None
    if number < 0:
        raise ArrayShapeError(f"{what} by {number}")
    return number


def repeat(a: Any, repeats: int, axis: int | None = None) -> Array:
    """`numpy.repeat` by a number."""
    x = lift(a) if axis is not None else reshape(a, -1)
    along, times = axis_of(axis or 0, x.ndim), whole_number(repeats, "np.repeat")
    shape = [n * times if k == along else n for k, n in enumerate(x.shape)]

    def at(indices: Indices) -> Expr:
        part = eq.integer_part("floordiv", indices[along], const(times))
        return x.at((*indices[:along], part, *indices[along + 1 :]))

    return Array(shape, x.dtype, at)


def tile(A: Any, reps: int | Sequence[int]) -> Array:
    """`numpy.tile`."""
    x = lift(A)
    times = _listed(reps)
    rank = max(x.ndim, len(times))
    times = [1] * (rank - len(times)) + times
    x = reshape(x, [*[1] * (rank - x.ndim), *x.shape])

    def at(indices: Indices) -> Expr:
        pairs = zip(indices, x.shape, times, strict=True)
        return x.at(
            tuple(i if t == 1 else eq.integer_part("mod", i, const(whole(n))) for i, n, t in pairs)
        )

    return Array([n * t if t != 1 else n for n, t in zip(x.shape, times, strict=True)], x.dtype, at)


def resize(a: Any, new_shape: int | Sequence[int]) -> Array:
    """`numpy.resize`: the elements, again and again; zeros if there are none."""
    x, sizes = reshape(a, -1), sizes_of(new_shape)
    if min(sizes, default=0) < 0:
        raise ArrayShapeError(f"np.resize to {tuple(sizes)}", hint="sizes are 0 or more")
    count, size = math.prod(sizes), x.size

    def at(indices: Indices) -> Expr:
        if not size:
            return const(0, eq.computed_in(x.dtype))
        if count <= size:
            return x.at(indices)
        return x.at((eq.integer_part("mod", indices[0], const(whole(size))),))

    return reshape(Array([count], x.dtype, at), sizes)


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Array:
    """`numpy.flip`."""
    x = lift(m)
    axes = range(x.ndim) if axis is None else [axis_of(k, x.ndim) for k in _listed(axis)]

    def at(indices: Indices) -> Expr:
        return x.at(
            tuple(
                eq.subtract(const(whole(n) - 1), i) if k in axes else i
                for k, (i, n) in enumerate(zip(indices, x.shape, strict=True))
            )
        )

    return Array(x.shape, x.dtype, at)


def roll(a: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """`numpy.roll`."""
    x = lift(a)
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, 0), x.shape)
    if isinstance(shift, Sequence) or isinstance(axis, Sequence):
        shifts, axes = _listed(shift), _listed(axis)
        for k in range(max(len(shifts), len(axes))):
            x = roll(x, shifts[k % len(shifts)], axes[k % len(axes)])
        return x
    along = axis_of(axis, x.ndim)
    size = int(x.shape[along])
    back = -as_int(shift) % size if size else 0

    def at(indices: Indices) -> Expr:
        moved = eq.integer_part("mod", eq.add(indices[along], const(back)), const(size))
        return x.at((*indices[:along], moved, *indices[along + 1 :]))

    return Array(x.shape, x.dtype, at)


def sliding_window_view(x: Any, window_shape: int | Sequence[int], axis: Any = None) -> Array:
    """`numpy.lib.stride_tricks.sliding_window_view`."""
    array, sizes = lift(x), sizes_of(window_shape)
    axes = range(array.ndim) if axis is None else _listed(axis)
    axes = [axis_of(k, array.ndim) for k in axes]
    if len(axes) != len(sizes):
        raise ArrayShapeError(
            f"sliding_window_view: {len(sizes)} sizes of windows for {len(axes)} axes",
            hint="give `axis` as many axes as `window_shape` has sizes",
        )
    shape = list(array.shape)
    for k, size in zip(axes, sizes, strict=True):
        if not 0 <= size <= shape[k]:
            raise ArrayShapeError(
                f"sliding_window_view: a window of {int(size)} along {int(shape[k])} elements"
            )
        shape[k] = shape[k] if size == 1 else whole(shape[k]) - int(size) + 1

    def at(indices: Indices) -> Expr:
        back = [*indices[: array.ndim]]
        for k, within in zip(axes, indices[array.ndim :], strict=True):
            back[k] = eq.add(back[k], within)
        return array.at(tuple(back))

    return Array([*shape, *sizes], array.dtype, at)
