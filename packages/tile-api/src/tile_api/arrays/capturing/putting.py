"""NumPy's functions that store elements where indices or masks say."""

from __future__ import annotations

import builtins
from typing import Any

from tile_api.arrays.capturing.accumulations import cumsum
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.creation import arange
from tile_api.arrays.capturing.elementwise import astype, lift, where
from tile_api.arrays.capturing.indexing import take
from tile_api.arrays.capturing.item_assignment import assigned, replace, written_to
from tile_api.arrays.capturing.views import axis_of, reshape, resize
from tile_api.frontend.source import calling_span
from tile_core.errors import ArrayShapeError


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """`numpy.put`: values, which are repeated, at places of the flat array."""
    old = written_to(a, "np.put")
    chosen, values = reshape(ind, -1), reshape(v, -1)
    if not chosen.size or not values.size:
        return
    if mode != "raise":
        chosen = take(arange(old.size), chosen, mode=mode)
    made = assigned(reshape(old, -1), chosen, resize(values, chosen.shape))
    replace(old, reshape(made, old.shape), calling_span())


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
    """`numpy.put_along_axis`."""
    old, chosen = written_to(arr, "np.put_along_axis"), lift(indices)
    flat = reshape(old, -1) if axis is None else old
    if chosen.ndim != flat.ndim:
        raise ArrayShapeError(f"np.put_along_axis: {flat.ndim} and {chosen.ndim} dimensions")
    along = axis_of(0 if axis is None else axis, flat.ndim)
    sizes = [[-1 if k == at else 1 for at in range(flat.ndim)] for k in range(flat.ndim)]
    key = tuple(
        chosen if k == along else reshape(arange(n), sizes[k]) for k, n in enumerate(flat.shape)
    )
    made = assigned(flat, key, lift(values))
    replace(old, reshape(made, old.shape) if axis is None else made, calling_span())


def putmask(a: Any, mask: Any, values: Any) -> None:
    """`numpy.putmask`: an element of the repeated values, at its own place."""
    old = written_to(a, "np.putmask")
    chosen, given = _mask(old, mask, "np.putmask"), astype(values, old.dtype)
    if given.size and old.size:
        replace(old, where(chosen, resize(given, old.shape), old), calling_span())


def place(arr: Any, mask: Any, vals: Any) -> None:
    """`numpy.place`: the repeated values, one after the other, where a mask says."""
    old = written_to(arr, "np.place")
    chosen, given = _mask(old, mask, "np.place"), reshape(astype(vals, old.dtype), -1)
    if not old.size:
        return
    if not given.size:
        raise ArrayShapeError("np.place: no values")
    flat: Any = reshape(chosen, -1)
    number: Any = cumsum(flat) - 1
    made = where(flat, take(given, number, mode="wrap"), reshape(old, -1))
    replace(old, reshape(made, old.shape), calling_span())


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """`numpy.fill_diagonal`: an element of the repeated values, or a number; not from a new top."""
    old = written_to(a, "np.fill_diagonal")
    if old.ndim < 2 or (old.ndim > 2 and len({*old.shape}) > 1):
        raise ArrayShapeError(
            f"np.fill_diagonal: {old.ndim} dimensions, which have no diagonal",
            hint="two dimensions, or more of one size",
        )
    if wrap and old.ndim == 2 and old.shape[0] > old.shape[1] + 1:
        raise ArrayShapeError(
            "np.fill_diagonal: wrap=True begins the diagonal of a tall matrix anew",
            hint="leave it out, or fill blocks of rows",
        )
    size = builtins.min(old.shape)
    values = reshape(lift(val), -1)
    if not size or not values.size:
        return
    at = arange(size)
    chosen = (at,) * old.ndim
    replace(old, assigned(old, chosen, resize(values, (size,))), calling_span())


def _mask(x: Array, mask: Any, what: str) -> Array:
    """Return a mask with the shape of an array."""
    chosen = lift(mask)
    if chosen.size != x.size:
        raise ArrayShapeError(f"{what}: a mask of {chosen.size} elements for {x.size}")
    return reshape(astype(chosen, "bool"), x.shape)
