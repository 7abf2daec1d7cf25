"""torch's functions of the order of elements: values, and the positions where they stood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tile_api.arrays.capturing import accumulations, creation, folds
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.indexing import take_along_axis
from tile_api.arrays.capturing.sorting import argsort as ascending
from tile_api.arrays.capturing.sorting import sort as in_order
from tile_api.arrays.capturing.torch_elements import floats_only
from tile_api.arrays.capturing.torch_shapes import part, select, squeeze
from tile_api.arrays.capturing.views import axis_of, expand_dims, flip, reshape
from tile_core.errors import ArrayShapeError


class Found(NamedTuple):
    """Values, and where they stood along a dimension."""

    values: Array
    indices: Array


def argsort(
    input: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> Array:
    """`torch.argsort`; it is always stable."""
    if not descending:
        return ascending(input, dim)
    last = int(input.shape[axis_of(dim, input.ndim)]) - 1 if input.ndim else 0
    made: Any = flip(ascending(flip(input, dim), dim), dim)  # equal elements stay in their order
    return last - made  # type: ignore[no-any-return]


def sort(
    input: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> Found:
    """`torch.sort`; it is always stable."""
    values = in_order(input, dim)
    return Found(flip(values, dim) if descending else values, argsort(input, dim, descending))


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Found:
    """`torch.topk`: always in order."""
    _require(0 <= k <= _size(input, dim), f"torch.topk: {k} of {_size(input, dim)} elements")
    values, indices = sort(input, dim, largest)
    return Found(part(values, dim, 0, k), part(indices, dim, 0, k))


def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """`torch.median`: the lower one of two in the middle."""
    if dim is None:
        return median(reshape(input, -1), 0).values
    count = _size(input, dim)
    _require(count > 0, "torch.median of no elements")
    found = _at(input, dim, (count - 1) // 2)
    if input.dtype.is_float:
        unknown: Any = input != input
        first = folds.argmax(unknown, dim, keepdims=True)
        has_none = folds.any(unknown, dim, keepdims=True)
        chosen: Any = np.where(has_none, first, found)
        found = chosen
    values = take_along_axis(input, found, dim)
    return Found(*(x if keepdim else squeeze(x, dim) for x in (values, found)))


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Found:
    """`torch.kthvalue`: the k-th smallest, counted from 1."""
    count = _size(input, dim)
    _require(1 <= k <= count, f"torch.kthvalue: element {k} of {count}, counted from 1")
    found = _at(input, dim, k - 1)
    values = take_along_axis(input, found, dim)
    return Found(*(x if keepdim else squeeze(x, dim) for x in (values, found)))


def _size(input: Any, dim: int) -> int:
    return int(input.shape[axis_of(dim, input.ndim)])


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise ArrayShapeError(otherwise)


def _logcumsumexp(input: Any, dim: int) -> Array:
    floats_only("logcumsumexp", input)
    return accumulations.ACCUMULATED["logaddexp"](input, dim)


def _at(input: Any, dim: int, place: int) -> Array:
    """Return the positions of the elements at a place of the order, the dimension kept."""
    return expand_dims(select(ascending(input, dim), dim, place), dim)


def _running(name: str) -> Callable[..., Found]:
    running = accumulations.ACCUMULATED[name]

    def run(input: Any, dim: int) -> Found:
        values: Any = running(input, dim)
        along = axis_of(dim, input.ndim)
        sizes = [int(n) if k == along else 1 for k, n in enumerate(input.shape)]
        here: Any = reshape(creation.arange(sizes[along]), sizes)
        met = np.where((input == values) | (input != input), here, 0)
        return Found(values, accumulations.ACCUMULATED["maximum"](met, dim))

    return run


ORDER: dict[str, Callable[..., Any]] = {
    "sort": sort, "argsort": argsort, "topk": topk, "median": median, "kthvalue": kthvalue,
    "cummax": _running("maximum"), "cummin": _running("minimum"),
    "logcumsumexp": _logcumsumexp,
}  # fmt: skip
"""By the name that torch gives a function, or an operator of ``aten``."""
