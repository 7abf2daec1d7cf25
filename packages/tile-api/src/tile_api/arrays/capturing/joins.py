"""Joins, parts, diagonals and paddings of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index as as_int
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import astype, common_type, element_type, lift
from tile_api.arrays.capturing.misfits import misfit
from tile_api.arrays.capturing.views import (
    axis_of,
    broadcast_to,
    expand_dims,
    flip,
    moveaxis,
    reshape,
    swapaxes,
    transpose,
    whole_number,
)
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import joined
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.index_bounds import clipped, ordered
from tile_api.arrays.equations.sizes import whole
from tile_api.frontend.source import calling_span
from tile_core.dtypes import DType
from tile_core.errors import ArrayShapeError, FrontendTypeError, UnknownArrayFunction

_ZERO = const(0)


def concatenate(arrays: Sequence[Any], axis: int | None = 0, *, dtype: Any = None) -> Array:
    """`numpy.concatenate`."""
    parts = [lift(x) if axis is not None else reshape(x, -1) for x in arrays]
    if dtype is not None:
        parts = [_of_same_kind(x, element_type(dtype)) for x in parts]
    if not parts:
        raise ArrayShapeError("np.concatenate of no arrays")
    along = axis_of(axis or 0, parts[0].ndim)
    shape = list(parts[0].shape)
    for x in parts[1:]:
        for k, size in enumerate(x.shape or (0,)):
            if x.ndim != len(shape) or (k != along and size != shape[k]):
                raise misfit(
                    "np.concatenate", [y.shape for y in parts], f"differ beside axis {along}",
                    arrays=parts,
                )  # fmt: skip
            if k != along:
                shape[k] = joined(shape[k], size)
    shape[along] = sum(whole(x.shape[along]) for x in parts)
    dtype = common_type(parts, parts)
    parts = [x for x in parts if x.shape[along]] or parts[:1]

    def at(indices: Indices) -> Expr:
        start = whole(shape[along])
        made: Expr | None = None
        for x in reversed(parts):
            start -= whole(x.shape[along])
            last = None if made is None else whole(x.shape[along]) - 1
            first = 0 if start else None
            inside = clipped(eq.subtract(indices[along], const(start)), first, last)
            mine = x.read_as(dtype, (*indices[:along], inside, *indices[along + 1 :]))
            if made is None:
                made = mine
            else:
                made = eq.where(
                    ordered("lt", indices[along], const(start + whole(x.shape[along]))), mine, made
                )
        assert made is not None
        return made

    return Array(shape, dtype, at)


def _of_same_kind(x: Array, dtype: DType) -> Array:
    if not np.can_cast(x.dtype.numpy(), dtype.numpy(), "same_kind"):
        raise FrontendTypeError(
            f"np.concatenate of {x.dtype} into {dtype} would change what is no {dtype}",
            span=calling_span(),
            hint=f'convert it before, as in x.astype("{dtype}")',
        )
    return astype(x, dtype)


def split(
    ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0, *, even: bool = True
) -> list[Array]:
    """`numpy.split`, or `numpy.array_split` if the parts need not be `even`."""
    x = lift(ary)
    along = axis_of(axis, x.ndim)
    size = whole(x.shape[along])
    if isinstance(indices_or_sections, (Sequence, np.ndarray)):
        ends = [as_int(k) for k in indices_or_sections]
    else:
        parts = as_int(indices_or_sections)
        if parts <= 0 or (even and size % parts):
            raise ArrayShapeError(
                f"np.split: {size} elements in {parts} parts",
                hint="np.array_split makes parts of several sizes",
            )
        each, more = divmod(size, parts)
        ends = [k * each + min(k, more) for k in range(1, parts)]
    pairs = zip([0, *ends], [*ends, None], strict=True)
    return [_between(x, along, start, end) for start, end in pairs]


def _between(x: Any, axis: int, start: int | None, end: int | None) -> Any:
    key = (*(slice(None),) * axis, slice(start, end))
    return x[key]


def array_split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """`numpy.array_split`."""
    return split(ary, indices_or_sections, axis, even=False)


def unstack(x: Any, *, axis: int = 0) -> tuple[Array, ...]:
    """`numpy.unstack`."""
    return tuple(moveaxis(x, axis, 0))


def at_least(a: Any, rank: int) -> Array:
    """`numpy.atleast_1d`, `atleast_2d` and `atleast_3d`."""
    x = lift(a)
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim:
        return reshape(x, [1, *x.shape, 1] if x.ndim == 1 else [*x.shape, 1])
    return reshape(x, [*[1] * (rank - x.ndim), *x.shape])


def vstack(tup: Sequence[Any], *, dtype: Any = None) -> Array:
    """`numpy.vstack`."""
    return concatenate([at_least(x, 2) for x in tup], 0, dtype=dtype)


def hstack(tup: Sequence[Any], *, dtype: Any = None) -> Array:
    """`numpy.hstack`."""
    parts = [at_least(x, 1) for x in tup]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype)


def dstack(tup: Sequence[Any]) -> Array:
    """`numpy.dstack`."""
    return concatenate([at_least(x, 3) for x in tup], 2)


def column_stack(tup: Sequence[Any]) -> Array:
    """`numpy.column_stack`."""
    parts = [lift(x) for x in tup]
    return concatenate([transpose(at_least(x, 2)) if x.ndim < 2 else x for x in parts], 1)


def block(arrays: Any) -> Array:
    """`numpy.block`: nested lists are joined along the last dimensions."""

    def rank(given: Any) -> int:
        is_list = isinstance(given, list)
        return max(map(rank, given), default=0) if is_list else lift(given).ndim

    def depth(given: Any) -> int:
        return 1 + depth(given[0]) if isinstance(given, list) and given else 0

    most = max(rank(arrays), depth(arrays))

    def joined(given: Any, axis: int) -> Array:
        is_list = isinstance(given, list)
        if is_list == (axis == 0) or (is_list and not given):
            raise ArrayShapeError("np.block: lists are nested to different depths, or empty")
        if not is_list:
            x = lift(given)
            return reshape(x, [*[1] * (most - x.ndim), *x.shape])
        return concatenate([joined(x, axis + 1) for x in given], axis)

    return joined(arrays, -depth(arrays))


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """`numpy.append`."""
    return concatenate([arr, values], axis)


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """`numpy.rot90`."""
    one, other = axes
    x = lift(m)
    turns = k % 4
    if turns == 2:
        return flip(x, (one, other))
    if turns == 1:
        return swapaxes(flip(x, other), one, other)
    return x if not turns else flip(swapaxes(x, one, other), other)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """`numpy.diagonal`."""
    x = moveaxis(a, (axis1, axis2), (-2, -1))
    down, right = max(0, -offset), max(0, offset)
    rows, columns = (whole(n) for n in x.shape[-2:])
    count = max(0, min(rows - down, columns - right))

    def at(indices: Indices) -> Expr:
        row, column = (eq.add(const(first), indices[-1]) for first in (down, right))
        return x.at((*indices[:-1], row, column))

    return Array([*x.shape[:-2], count], x.dtype, at)


def diag(v: Any, k: int = 0) -> Array:
    """`numpy.diag`: a diagonal, or a matrix with that diagonal."""
    x = lift(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ArrayShapeError(f"np.diag of {x.ndim} dimensions")
    down, right = max(0, -k), max(0, k)
    size = int(x.shape[0]) + down + right

    def at(indices: Indices) -> Expr:
        row = clipped(eq.subtract(indices[0], const(down)), 0, int(x.shape[0]) - 1)
        found = x.at((_ZERO if x.shape[0] == 1 else row,))
        is_on = eq.make("eq", indices[1], eq.add(indices[0], const(k)))
        return eq.where(is_on, found, const(0, found.dtype))

    return Array(
        (size, size), x.dtype, at if x.size else lambda _: const(0, eq.computed_in(x.dtype))
    )


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """`numpy.diff`; what is put before and behind is a number, or an array."""
    x: Any = lift(a)
    along = axis_of(axis, x.ndim)
    parts = [lift(y) for y in (prepend, x, append) if y is not None]
    if len(parts) > 1:
        one = [1 if k == along else size for k, size in enumerate(x.shape)]
        x = concatenate([y if y.ndim else broadcast_to(y, one) for y in parts], along)
    for _ in range(whole_number(n, "np.diff")):
        later, earlier = _between(x, along, 1, None), _between(x, along, None, -1)
        x = later != earlier if x.dtype.is_bool else later - earlier
    made: Array = x
    return made


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """`numpy.pad` with a constant, or with elements: "edge", "reflect", "symmetric", "wrap"."""
    x = lift(array)
    widths = np.broadcast_to(np.asarray(pad_width), (x.ndim, 2)).tolist()
    fills = np.broadcast_to(np.asarray(constant_values), (x.ndim, 2)).tolist()
    if mode not in ("constant", *_PADDED):
        raise UnknownArrayFunction(
            f"np.pad has no mode {mode!r} here",
            hint=f"there are 'constant', {', '.join(map(repr, _PADDED))}",
        )
    for axis, (width, fill) in enumerate(zip(widths, fills, strict=True)):
        x = _padded(x, axis, width, mode, fill)
    return x


def _padded(x: Array, axis: int, width: Sequence[int], mode: str, fill: Sequence[Any]) -> Array:
    before, after = (whole_number(k, "np.pad") for k in width)
    if not before and not after:
        return x
    size = whole(x.shape[axis])
    kind = eq.computed_in(x.dtype)
    if mode != "constant" and not size:
        raise ArrayShapeError("np.pad of no elements")

    def at(indices: Indices) -> Expr:
        here = eq.subtract(indices[axis], const(before))
        if mode != "constant":
            here = _PADDED[mode](here, size)
            return x.at((*indices[:axis], here, *indices[axis + 1 :]))
        made = const(fill[1], kind)
        if size:
            end = const(before + size)
            here = clipped(here, 0 if before else None, size - 1 if after else None)
            inside = x.at((*indices[:axis], _ZERO if size == 1 else here, *indices[axis + 1 :]))
            made = eq.where(ordered("lt", indices[axis], end), inside, made)
        if not before:
            return made
        return eq.where(ordered("lt", indices[axis], const(before)), const(fill[0], kind), made)

    return Array([*x.shape[:axis], before + size + after, *x.shape[axis + 1 :]], x.dtype, at)


def _edge(here: Expr, size: int) -> Expr:
    return eq.make("maximum", eq.make("minimum", here, const(size - 1)), _ZERO)


def _wrapped(here: Expr, size: int) -> Expr:
    return eq.integer_part("mod", here, const(size))


def _reflected(here: Expr, size: int, period: int) -> Expr:
    """Return an index that runs to and fro; the way back ends at `period`."""
    if not period:
        return _ZERO
    along = eq.integer_part("mod", here, const(period))
    back = const(period - (period == 2 * size))
    return eq.make("minimum", along, eq.subtract(back, along))


_PADDED: dict[str, Callable[[Expr, int], Expr]] = {
    "edge": _edge,
    "wrap": _wrapped,
    "reflect": lambda here, size: _reflected(here, size, 2 * size - 2),
    "symmetric": lambda here, size: _reflected(here, size, 2 * size),
}


def stack(arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None) -> Array:
    """`numpy.stack`."""
    return concatenate([expand_dims(x, axis) for x in arrays], axis, dtype=dtype)
