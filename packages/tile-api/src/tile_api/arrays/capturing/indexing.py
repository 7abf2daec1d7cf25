"""Slices, `None`, `...`, numbers, and arrays of indices: what stands in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import (
    astype,
    broadcast,
    common_type,
    constant,
    lift,
    spread,
    where,
)
from tile_api.arrays.capturing.views import axis_of
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.index_bounds import is_natural
from tile_api.arrays.equations.sizes import Size, ValueNeeded, names_in, whole
from tile_core.errors import ArrayShapeError, DataDependentShape


def taken(x: Array, key: Any) -> Array:
    """Return ``x[key]``."""
    keys = completed(x, list(key) if isinstance(key, tuple) else [key])
    chosen = [k for k in keys if isinstance(k, Array)]
    common = broadcast([k.shape for k in chosen], "indices", chosen)
    place = _place(keys)
    shape: list[int] = []
    plan: list[Any] = []
    sizes = iter(x.shape)
    if chosen and place == 0:
        shape += common
    for at_key, k in enumerate(keys):
        if chosen and at_key == place > 0:
            shape += common
        if k is None:
            shape.append(1)
            plan.append(None)
        elif isinstance(k, slice):
            size = next(sizes)
            start, step, count = sliced(k, size)
            shape.append(size if (start, step, count) == (0, 1, size) else count)
            plan.append((start, step))
        elif isinstance(k, Array):
            plan.append((k, whole(next(sizes))))
            for corner in (0, -1) if k.size else ():
                found = k.at(tuple(const(whole(n) - 1 if corner else 0) for n in k.shape))
                if found.op == "const":
                    _inside(found.value, plan[-1][1])
        else:
            plan.append(const(_inside(k, whole(next(sizes)))))
    first = sum(k is None or isinstance(k, slice) for k in keys[:place])

    def at(indices: Indices) -> Expr:
        where = indices[first : first + len(common)] if chosen else ()
        rest = [*indices[:first], *indices[first + len(where) :]]
        back: list[Expr] = []
        for step in plan:
            if isinstance(step, Expr):
                back.append(step)
            elif step is None:
                del rest[0]
            elif isinstance(step[0], Array):
                picked = step[0].read_as(eq.INDEX, spread(step[0], where))
                back.append(counted(picked, step[1]))
            else:
                back.append(eq.add(const(step[0]), eq.multiply(const(step[1]), rest.pop(0))))
        return x.at(tuple(back))

    return Array(shape, x.dtype, at)


def sliced(key: slice, size: int) -> tuple[int, int, int]:
    """Return the first index of a slice, its step, and how many it has."""
    if not any(isinstance(x, Size) for x in (size, key.start, key.stop)):
        start, stop, step = key.indices(int(size))
        return start, step, len(range(start, stop, step))
    if key.step not in (None, 1):
        raise ValueNeeded(names_in(size), f"a slice goes through {size} by steps of {key.step}")
    size = whole(size)

    def place(x: int | None, default: int) -> int:
        at = default if x is None else whole(x)
        return max(0, min(at + size if at < 0 else at, size))

    start, stop = place(key.start, 0), place(key.stop, size)
    return start, 1, max(0, stop - start)


def _place(keys: Sequence[Any]) -> int:
    """Return before which key the dimensions of index arrays come: in front if these are apart."""
    picked = [k for k, key in enumerate(keys) if key is not None and not isinstance(key, slice)]
    if not picked or picked[-1] - picked[0] >= len(picked):
        return 0
    return picked[0]


def counted(at: Expr, size: int) -> Expr:
    """Return an index of which negative ones count from the end."""
    if at.op == "const":
        return const(at.value + size if at.value < 0 else at.value)
    if is_natural(at):
        return at
    return eq.where(eq.make("lt", at, const(0)), eq.add(const(size), at), at)


def completed(x: Array, keys: list[Any]) -> list[Any]:
    """Return one key for each dimension of an array, and None for each that is new."""
    keys = [_checked(key) for key in _with_known_masks(x, keys)]
    real = sum(key is not None and key is not Ellipsis for key in keys)
    if real > x.ndim:
        raise ArrayShapeError(f"{real} indices for an array of {x.ndim} dimensions")
    whole = [slice(None)] * (x.ndim - real)
    for at, key in enumerate(keys):
        if key is Ellipsis:
            if any(other is Ellipsis for other in keys[at + 1 :]):
                raise ArrayShapeError("... stands twice in brackets")
            return keys[:at] + whole + keys[at + 1 :]
    return keys + whole


def _with_known_masks(x: Array, keys: list[Any]) -> list[Any]:
    """Return keys with the indices that masks choose which are known when this is captured."""
    masks = [_known_mask(key) for key in keys]
    dims = [
        0 if key is None or key is Ellipsis else 1 if mask is None else mask.ndim
        for key, mask in zip(keys, masks, strict=True)
    ]
    made: list[Any] = []
    for k, mask in enumerate(masks):
        if mask is None:
            made.append(keys[k])
            continue
        is_after = any(key is Ellipsis for key in keys[:k])
        at = x.ndim - sum(dims[k:]) if is_after else sum(dims[:k])
        if mask.shape != tuple(x.shape[at : at + mask.ndim]):
            raise ArrayShapeError(
                f"a mask of shape {mask.shape} for dimensions {tuple(x.shape[at:])}"
            )
        made += mask.nonzero()
    return made


def _known_mask(key: Any) -> Any:
    if isinstance(key, list) and not all(isinstance(k, (bool, np.bool_)) for k in key):
        return None
    mask = np.asarray(key, bool) if isinstance(key, list) and key else key
    return mask if isinstance(mask, np.ndarray) and mask.dtype == bool and mask.ndim else None


def _checked(key: Any) -> Any:
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if isinstance(key, (Array, np.ndarray, list)):
        found = lift(key)
        if found.dtype.is_bool:
            raise DataDependentShape(
                "how many elements a mask chooses is known only when the kernel runs",
                hint="np.where keeps the shape",
            )
        if not found.dtype.is_int:
            raise ArrayShapeError(f"indices of {found.dtype}")
        return found
    if isinstance(key, (bool, np.bool_)):
        raise ArrayShapeError("an index that is a truth value", hint="None adds a dimension")
    try:
        return as_int(key)
    except TypeError:
        raise ArrayShapeError(
            f"an index of type {type(key).__name__}",
            hint="a number, a slice, None, ... or an array of integers",
        ) from None


def _inside(key: int, size: int) -> int:
    if not -size <= key < size:
        raise ArrayShapeError(f"index {key} of a dimension of {size}")
    return key % size


def take(a: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Array:
    """`numpy.take`."""
    from tile_api.arrays.capturing.elementwise import apply, clip
    from tile_api.arrays.capturing.ufuncs import UFUNCS
    from tile_api.arrays.capturing.views import reshape

    x = lift(a) if axis is not None else reshape(a, -1)
    along = axis_of(axis or 0, x.ndim)
    chosen, size = _checked(lift(indices)), whole(x.shape[along])
    if mode == "clip":
        chosen = clip(chosen, 0, size - 1)
    elif mode == "wrap":
        chosen = apply(UFUNCS["remainder"], "remainder", (chosen, size))
    elif mode != "raise":
        raise ArrayShapeError(f"np.take: mode {mode!r}", hint="raise, clip or wrap")
    return taken(x, (*[slice(None)] * along, chosen))


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Array:
    """`numpy.take_along_axis`."""
    from tile_api.arrays.capturing.views import reshape

    x, chosen = lift(arr) if axis is not None else reshape(arr, -1), _checked(lift(indices))
    along = axis_of(0 if axis is None else axis, x.ndim)
    if x.ndim != chosen.ndim:
        raise ArrayShapeError(f"np.take_along_axis: {x.ndim} and {chosen.ndim} dimensions")
    sizes: Sequence[int] = [1 if k == along else n for k, n in enumerate(x.shape)]
    shape = broadcast([sizes, chosen.shape], "np.take_along_axis", (x, chosen))

    def at(where: Indices) -> Expr:
        picked = counted(chosen.read_as(eq.INDEX, spread(chosen, where)), whole(x.shape[along]))
        mine = [const(0) if n == 1 else i for i, n in zip(where, x.shape, strict=True)]
        return x.at((*mine[:along], picked, *mine[along + 1 :]))

    return Array(shape, x.dtype, at)


def ix_(*args: Any) -> tuple[Array, ...]:
    """`numpy.ix_`."""
    from tile_api.arrays.capturing.views import reshape

    rank = len(args)
    return tuple(
        reshape(_checked(lift(x)), [-1 if at == k else 1 for at in range(rank)])
        for k, x in enumerate(args)
    )


def choose(a: Any, choices: Any, *, mode: str = "raise") -> Array:
    """`numpy.choose`: elements of the arrays whose numbers are given."""
    from tile_api.arrays.capturing.elementwise import apply, clip
    from tile_api.arrays.capturing.ufuncs import UFUNCS

    given = [*choices]
    arrays, chosen = [lift(x) for x in given], lift(a)
    if not arrays:
        raise ArrayShapeError("np.choose from no arrays")
    if not chosen.dtype.is_bool and (not chosen.dtype.is_int or chosen.dtype == "uint64"):
        raise ArrayShapeError(f"np.choose: numbers of arrays of {chosen.dtype}")
    shape = broadcast([x.shape for x in (chosen, *arrays)], "np.choose", (chosen, *arrays))
    dtype, last = common_type(given, arrays), len(arrays) - 1
    if mode == "clip":
        chosen = clip(astype(chosen, eq.INDEX), 0, last)
    elif mode == "wrap":
        chosen = apply(UFUNCS["remainder"], "remainder", (astype(chosen, eq.INDEX), last + 1))
    elif mode == "raise":
        chosen = _checked_number(chosen, last + 1)
    else:
        raise ArrayShapeError(f"np.choose: mode {mode!r}", hint="raise, clip or wrap")

    def at(indices: Indices) -> Expr:
        number = chosen.read_as(eq.INDEX, spread(chosen, indices))
        parts = [x.read_as(dtype, spread(x, indices)) for x in arrays]
        made = parts[-1]
        for k in range(last - 1, -1, -1):
            made = eq.where(eq.compared("le", number, const(k)), parts[k], made)
        return made

    return Array(shape, dtype, at)


def _checked_number(chosen: Array, count: int) -> Array:
    """Return numbers of arrays as elements of a table of them, which is read where it has some."""
    table = constant(np.arange(count), eq.INDEX)
    return Array(chosen.shape, eq.INDEX, lambda i: table.at((chosen.read_as(eq.INDEX, i),)))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """`numpy.select`."""
    if len(condlist) != len(choicelist):
        raise ArrayShapeError(f"np.select: {len(condlist)} conditions, {len(choicelist)} arrays")
    made = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        made = where(condition, choice, made)
    return lift(made)
