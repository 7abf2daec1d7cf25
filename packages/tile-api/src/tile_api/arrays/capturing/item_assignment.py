"""``x[key] = value``: a new array under the names of the old one.

What was computed from the array before keeps the old elements, as in NumPy; views of it are taken
anew, and what it is a view of changes with it.

    Before   x[1:-1] = y
    After    x is where((1 <= i) & (i < n - 1), y[i - 1], old x[i])
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import astype, broadcast, lift, spread
from tile_api.arrays.capturing.elementwise import where as chosen
from tile_api.arrays.capturing.indexing import completed, counted, sliced, taken
from tile_api.arrays.capturing.views import reindexed
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.expressions import Expr, Indices, const, make
from tile_api.arrays.equations.index_bounds import clipped, ordered
from tile_api.arrays.equations.sizes import whole
from tile_api.arrays.equations.substitution import substituted
from tile_api.frontend.source import calling_span
from tile_core.errors import (
    ArrayShapeError,
    DataDependentShape,
    ImmutableArray,
    Span,
    UnknownArrayFunction,
)

MOST_APART = 16
"""Places that arrays of indices name, up to which they are compared one by one."""


def assign(x: Array, key: Any, value: Any) -> None:
    """Let other elements stand under the names of `x` where a key says.

    Raises
    ------
    ImmutableArray
        If it is an argument, or a view of one.
    ArrayShapeError
        If the value does not fit.
    """
    old = x.usable()
    refuse_argument(old, "[...] = writes into the argument", "assign to a copy: y = x.copy()")
    if isinstance(value, int) and old.dtype.is_int and old.dtype.bits >= 8:
        old.dtype.numpy().type(value)  # NumPy refuses numbers that the type does not hold
    new = lift(value)
    if new.base is old and new.key is not None and _is_same(*new.key, key):
        return  # as after x[key] += 1, which has changed x already
    replace(old, assigned(old, key, new), calling_span())


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """`numpy.copyto`."""
    if not isinstance(dst, Array):
        raise UnknownArrayFunction("np.copyto into an array that is no captured one")
    value = lift(src)
    if not np.can_cast(value.dtype.numpy(), dst.dtype.numpy(), casting):  # type: ignore[arg-type]
        raise UnknownArrayFunction(f"np.copyto: {value.dtype} to {dst.dtype}")
    assign(dst, ..., value if where is True else chosen(where, value, dst))


def replace(old: Array, new: Array, span: Span | None) -> None:
    """Let an array stand for another one under all its names, and in what this is a view of."""
    if new is old:
        return
    if old.base is not None and old.key is not None:
        assign(old.base, *old.key, new)
        return
    whole = _whole_of(old)
    if whole is not old:  # NumPy has a view there, or a copy
        whole.is_changed, whole.changed_at = True, span
    old.newest, old.changed_at = new, span


def written_to(a: Any, what: str) -> Array:
    """Return the array that a function writes into.

    Raises
    ------
    ImmutableArray
        If it is an argument, or a view of one.
    UnknownArrayFunction
        If it is none that is captured.
    """
    if not isinstance(a, Array):
        raise UnknownArrayFunction(
            f"{what} into an array that is no captured one",
            hint="start from one that the function makes: np.full(a.shape, a)",
        )
    old = a.usable()
    refuse_argument(old, f"{what} writes into the argument", "write into a copy: y = x.copy()")
    return old


def is_made(x: Array) -> bool:
    """Tell whether the function has made an array: it is no argument, and no view of one."""
    return _whole_of(x.usable()).name is None


def refuse_argument(x: Array, what: str, hint: str) -> None:
    """Raise the error of what writes into an argument, or a view of one."""
    name = _whole_of(x).name
    if name is not None:
        raise ImmutableArray(
            f"{what} {name}: arrays are values here", span=calling_span(), hint=hint
        )


def _whole_of(x: Array) -> Array:
    """Return what an array is a view of, in the end."""
    while x.base is not None:
        x = x.base
    return x


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether keys are one object, or made of such: Python makes slices anew since 3.12."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, slice) and isinstance(other, slice):
        ends = zip(*((s.start, s.stop, s.step) for s in (one, other)), strict=True)
        return all(a is b or (isinstance(a, int) and a == b) for a, b in ends)
    return one is other


def assigned(x: Array, key: Any, value: Array) -> Array:
    """Return an array like `x` with a value where a key says, `x` itself if that is nowhere."""
    places = Places(x, key)
    value = places.fitting(astype(value, x.dtype))
    if not places.count:
        return x

    def at(indices: Indices) -> Expr:
        is_there, where = places.of(indices)
        mine = value.at(spread(value, where))
        return mine if is_there is None else eq.where(is_there, mine, x.at(indices))

    return Array(x.shape, x.dtype, at)


@dataclass(frozen=True)
class _Mask:
    """A mask in brackets: the dimensions that it chooses from, and where they are in the region."""

    mask: Array
    first: int
    in_region: int


def _without_masks(x: Array, keys: list[Any]) -> tuple[list[_Mask], list[Any]]:
    """Return masks that are data, and keys in which whole dimensions stand in their place."""
    found: list[_Mask] = []
    made: list[Any] = []
    for k, key in enumerate(keys):
        is_mask = isinstance(key, Array) and key.dtype.is_bool and key.ndim
        if not is_mask:
            made.append(key)
            continue
        mask = key.usable()
        after = sum(_rank(other) for other in keys[k + 1 :])
        first = sum(_rank(other) for other in keys[:k])
        if any(other is Ellipsis for other in keys[:k]):
            first = x.ndim - after - mask.ndim
        if tuple(mask.shape) != tuple(x.shape[first : first + mask.ndim]):
            raise ArrayShapeError(
                f"a mask of shape {tuple(mask.shape)} for dimensions {tuple(x.shape[first:])}"
            )
        if any(isinstance(other, (Array, np.ndarray, list)) for other in keys if other is not key):
            raise DataDependentShape(
                "how many elements a mask chooses is known only when the kernel runs",
                hint="assign to one mask at a time, and not with arrays of indices beside it",
            )
        new = sum(other is None or isinstance(other, slice) for other in keys[:k])
        if any(other is Ellipsis for other in keys[:k]):
            new += first - sum(_rank(other) for other in keys[:k])
        found.append(_Mask(mask, first, new))
        made += [slice(None)] * mask.ndim
    return found, made


def _rank(key: Any) -> int:
    """Return how many dimensions a key chooses from."""
    if key is None or key is Ellipsis:
        return 0
    is_mask = isinstance(key, (Array, np.ndarray)) and str(key.dtype) == "bool"
    return key.ndim if is_mask else 1


def _fitting(value: Array, region: Array, masks: Sequence[_Mask]) -> Array:
    """Return a value that is broadcast to a region; what a mask chooses has one value."""
    for m in masks:
        behind = region.ndim - m.in_region - m.mask.ndim
        if value.ndim <= behind:
            continue
        at = value.ndim - behind - 1
        if value.shape[at] != 1:
            raise DataDependentShape(
                "how many elements a mask chooses is known only when the kernel runs",
                hint="np.where(mask, y, x) chooses between two arrays of one shape",
            )
        shape = [*value.shape[:at], *[1] * m.mask.ndim, *value.shape[at + 1 :]]
        old = value

        def back(indices: Indices, old: Array = old, at: int = at, m: _Mask = m) -> Expr:
            return old.at((*indices[:at], const(0), *indices[at + m.mask.ndim :]))

        value = Array(shape, value.dtype, back)
    while value.ndim > region.ndim and value.shape[0] == 1:
        value = taken(value, 0)
    if tuple(broadcast([value.shape, region.shape], "x[...] = y", (value, region))) != tuple(
        region.shape
    ):
        raise ArrayShapeError(
            f"x[...] = y: a value of shape {tuple(value.shape)} for elements of shape "
            f"{tuple(region.shape)}"
        )
    return value


class Places:
    """Tells which elements of an array a key chooses, and which element of the region each is.

    Attributes
    ----------
    count
        How many elements the region has, masks aside.
    rank
        Its dimensions: a mask is one.
    """

    def __init__(self, x: Array, key: Any) -> None:
        masks, keys = _without_masks(x, list(key) if isinstance(key, tuple) else [key])
        keys = completed(x, keys)
        self._shape, self._keys, self._masks = x.shape, keys, masks
        self._region = taken(x, tuple(keys))
        self.count = prod(self._region.shape)
        self.rank = self._region.ndim - sum(m.mask.ndim - 1 for m in masks)
        self._picked = [k for k in keys if isinstance(k, Array)]
        self._common = broadcast([k.shape for k in self._picked], "indices", self._picked)
        at = [k for k, key in enumerate(keys) if key is not None and not isinstance(key, slice)]
        is_apart = bool(at) and at[-1] - at[0] >= len(at)
        before = keys[: 0 if is_apart or not at else at[0]]
        self._place = sum(k is None or isinstance(k, slice) for k in before)

    def fitting(self, value: Array) -> Array:
        """Return a value that is broadcast to the region; what a mask chooses has one value."""
        return _fitting(value, self._region, self._masks)

    def of(self, indices: Indices) -> tuple[Expr | None, Indices]:
        """Return whether an element is one, None if all are, and its indices in the region.

        Of several elements of the region that go there, it is the last one.
        """
        conditions, hits, region, left = self.hits(indices)
        if not left:
            conditions += hits
        else:
            last = _last_of(left, functools.reduce(partial(make, "and"), hits))
            conditions.append(make("le", const(0), last))
            sizes = [c.value[1] for c in left]
            digits = reindexed((clipped(last, 0),), [prod(sizes)], sizes)
            found = dict(zip(left, digits, strict=True))
            region = [found.get(at, at) for at in region]
        return all_of(conditions), tuple(region)

    def hits(self, indices: Indices) -> tuple[list[Expr], list[Expr], list[Expr], list[Expr]]:
        """Return which elements of the region go to an element of the array.

        Returns
        -------
        conditions, hits
            What holds where any does, and where one does.
        region
            The indices of one in the region, in terms of the variables that are left.
        left
            Variables of dimensions of arrays of indices that say nothing of which one it is.
        """
        conditions: list[Expr] = []
        region: list[Expr] = []
        pairs: list[tuple[Array, Expr, int]] = []
        dims = iter(zip(indices, self._shape, strict=True))
        for key in self._keys:
            if key is None:
                region.append(const(0))
                continue
            i, size = next(dims)
            if isinstance(key, slice):
                region.append(_within(i, key, size, conditions))
            elif isinstance(key, Array):
                pairs.append((key, i, whole(size)))
            elif size != 1:
                conditions.append(make("eq", i, const(key % whole(size))))
        for m in self._masks:
            part = indices[m.first : m.first + m.mask.ndim]
            conditions.append(m.mask.at(spread(m.mask, part)))
        if not pairs:
            return conditions, [], region, []
        hits, common, left = self._found(pairs, conditions, indices)
        region[self._place : self._place] = common
        return conditions, hits, region, left

    def _found(
        self, pairs: Sequence[tuple[Array, Expr, int]], conditions: list[Expr], indices: Indices
    ) -> tuple[list[Expr], list[Expr], list[Expr]]:
        """Return which of the common elements of arrays of indices are meant, as in `hits`."""
        taken: frozenset[str] = frozenset().union(*(i.free for i in indices))
        common: list[Expr] = []
        for n in self._common:
            common.append(const(0) if n == 1 else eq.index(variable_of(n, taken), whole(n)))
            taken |= common[-1].free
        read = [
            (counted(key.read_as(eq.INDEX, spread(key, tuple(common))), size), i, size)
            for key, i, size in pairs
        ]
        # an array that counts says which element is meant: x[np.arange(n), y]
        counting = {c for c in common if c.op == "index"}
        known = {found: i for found, i, _ in reversed(read) if found in counting}
        conditions += [
            make("lt", i, const(found.value[1]))
            for found, i, size in read
            if found in known and known[found] is i and found.value[1] < size
        ]
        values = {c.value[0]: i for c, i in known.items()}
        hits = [
            make("eq", substituted(found, values), i)
            for found, i, _ in read
            if known.get(found) is not i
        ]
        left = [c for c in common if c in counting and c not in known]
        return (
            hits,
            [clipped(known[c], 0, c.value[1] - 1) if c in known else c for c in common],
            left,
        )


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """Return whether all conditions hold, None if there are none; known ones are left out."""
    left = [c for c in conditions if c.op != "const" or not c.value]
    never = [c for c in left if c.op == "const"]
    return functools.reduce(partial(make, "and"), never or left) if left else None


def _last_of(over: Sequence[Expr], hits: Expr) -> Expr:
    """Return the place of the last element at which a condition holds, -1 if it does at none."""
    names, sizes = zip(*(c.value for c in over), strict=True)
    count = prod(sizes)
    if count <= MOST_APART:
        last: Expr = const(-1)
        for k in range(count):
            at = dict(zip(names, reindexed((const(k),), [count], sizes), strict=True))
            last = eq.where(substituted(hits, at), const(k), last)
        return last
    (line,) = reindexed(tuple(over), sizes, [count])
    last = eq.where(hits, line, const(-1))
    for name, size in reversed(tuple(zip(names, sizes, strict=True))):
        last = eq.reduce("max", name, size, last)
    return last


def _within(i: Expr, key: slice, size: int, conditions: list[Expr]) -> Expr:
    """Return an index into the region of a slice; add where it is one."""
    start, step, count = sliced(key, size)
    if (start, step, count) == (0, 1, size):
        return i
    if step < 0:  # the same elements, counted from their other end
        back = _within(i, slice(start + (count - 1) * step, start + 1, -step), size, conditions)
        return eq.subtract(const(count - 1), back)
    place = eq.subtract(i, const(start))
    if start:
        conditions.append(ordered("le", const(start), i))
    if step > 1:
        conditions.append(make("eq", eq.integer_part("mod", place, const(step)), const(0)))
    if start + count * step < size:
        conditions.append(ordered("lt", i, const(start + (count - 1) * step + 1)))
    place = eq.integer_part("floordiv", place, const(step)) if step > 1 else place
    return clipped(place, 0 if start else None, count - 1)
