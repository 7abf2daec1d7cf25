"""Running sums, products and extrema: recurrences with an operation of NumPy's as their step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing import folds, joins
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import astype, element_type, lift, promoted
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.capturing.views import axis_of, reshape
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import Expr, Indices, const, make
from tile_api.arrays.equations.recurrence import Steps, recurrence
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import ArrayShapeError


def _accumulated(name: str, x: Array, along: int, dtype: DType) -> Array:
    """Return an array in which each element is folded with all before it."""
    kind = eq.computed_in(dtype)
    first = const(_IDENTITY[name](dtype), kind)
    rest = [n for axis, n in enumerate(x.shape) if axis != along]
    of = recurrence(x.shape[along], [rest])

    def in_order(at: Expr, indices: Sequence[Expr]) -> Indices:
        return (*indices[:along], at, *indices[along:])

    carried = make("carry", *of.indices(0), value=(of.token, 0), dtype=kind)
    element = x.read_as(dtype, in_order(of.step, of.indices(0)))
    steps = Steps(of, (first,), (UFUNCS[name](carried, element),))

    def at(indices: Indices) -> Expr:
        return steps.value(0, indices[along], (*indices[:along], *indices[along + 1 :]))

    return Array(x.shape, dtype, at)


_IDENTITY: dict[str, Callable[[DType], Any]] = {
    "add": lambda dtype: 0,
    "multiply": lambda dtype: 1,
    "maximum": lambda dtype: folds.identity("max", dtype),
    "minimum": lambda dtype: folds.identity("min", dtype),
    "logaddexp": lambda dtype: -math.inf,
}


def _along(name: str) -> Callable[..., Array]:
    def run(array: Any, axis: int = 0, dtype: Any = None) -> Array:
        x = lift(array)
        if not x.ndim:
            raise ArrayShapeError(f"np.{name}.accumulate of an array of no dimensions")
        return _typed(name, x, axis_of(axis, x.ndim), dtype)

    run.__name__ = run.__qualname__ = f"{name}_accumulate"
    return run


def _typed(name: str, x: Array, along: int, dtype: Any) -> Array:
    """Accumulate in the type that NumPy does, or in the one that is asked for."""
    if name in ("add", "multiply"):
        kind = folds.accumulated(x.dtype) if dtype is None else element_type(dtype)
        return _accumulated(name, x, along, kind)
    if name == "logaddexp":
        (kind, _), _ = promoted("logaddexp", (x, x), (x, x))
    else:
        kind = x.dtype
    kind = kind if dtype is None else element_type(dtype)
    if kind.is_bool:  # truth values are compared as numbers
        number = dtype_of("int32")
        return astype(_accumulated(name, astype(x, number), along, number), kind)
    return _accumulated(name, x, along, kind)


ACCUMULATED = {name: _along(name) for name in _IDENTITY}
"""What `accumulate` of a ufunc does, by its name."""


def _running(name: str) -> Callable[..., Array]:
    def run(a: Any, axis: int | None = None, dtype: Any = None) -> Array:
        x = lift(a)
        if axis is None:
            x, axis = reshape(x, -1), 0
        return _typed(name, x, axis_of(axis, x.ndim), dtype)

    return run


cumsum = _running("add")
cumsum.__name__, cumsum.__doc__ = "cumsum", "`numpy.cumsum`."
cumprod = _running("multiply")
cumprod.__name__, cumprod.__doc__ = "cumprod", "`numpy.cumprod`."


def _standard(name: str, numpys: str) -> Callable[..., Array]:
    def run(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Array:
        array = lift(x)
        if axis is None and array.ndim != 1:
            raise ArrayShapeError(
                f"np.{numpys} of {array.ndim} dimensions without an axis", hint="say `axis`"
            )
        along = axis_of(axis or 0, array.ndim)
        made = _typed(name, array, along, dtype)
        if not include_initial:
            return made
        shape = [1 if k == along else n for k, n in enumerate(array.shape)]
        first = const(_IDENTITY[name](made.dtype), eq.computed_in(made.dtype))
        return joins.concatenate([Array(shape, made.dtype, lambda _: first), made], along)

    run.__name__ = run.__qualname__ = numpys
    run.__doc__ = f"`numpy.{numpys}`, of the Array API."
    return run


cumulative_sum = _standard("add", "cumulative_sum")
cumulative_prod = _standard("multiply", "cumulative_prod")


def nan_running(known: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    """Return an accumulation in which what is no number changes nothing."""

    def run(a: Any, axis: int | None = None, dtype: Any = None) -> Array:
        x: Any = lift(a)
        return known(np.where(x == x, x, x.dtype.numpy().type(neutral)), axis, dtype)

    run.__name__ = run.__qualname__ = f"nan{known.__name__}"
    run.__doc__ = f"`numpy.nan{known.__name__}`."
    return run


NAN_ACCUMULATIONS = {
    "nancumsum": nan_running(cumsum, 0),
    "nancumprod": nan_running(cumprod, 1),
}
