"""``np.add.at`` and its like: each element of a region goes to the element that an index says.

    np.add.at(y, i, v)   is   y[r] + Σ_s where(i[s] == r, v[s], 0)

Repeated indices accumulate. What `i` says is searched for by kernels that go through it once
(`tile_api.arrays.planning.scatter`), in its order: equal arguments give equal bits.
"""

from __future__ import annotations

from typing import Any

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import lift, promoted, spread
from tile_api.arrays.capturing.folds import identity
from tile_api.arrays.capturing.item_assignment import Places, all_of, replace, written_to
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import told
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.frontend.source import calling_span
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

ACCUMULATED = {
    "add": "sum", "subtract": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
}  # fmt: skip
"""The reduction of what goes to one element, by the name of the ufunc."""
_OF_TRUTHS = {"add": "maximum", "multiply": "minimum"}
"""Truth values are numbers here, of which ``or`` and ``and`` are extrema."""


def at(name: str, a: Any, indices: Any, b: Any) -> None:
    """`numpy.ufunc.at` of two operands.

    Raises
    ------
    ImmutableArray
        If `a` is an argument, or a view of one.
    ArrayShapeError
        If `b` does not fit what the indices choose.
    UnknownArrayFunction
        If steps round to the type of `a`: what is left depends on their order.
    """
    what = f"np.{name}.at"
    old = written_to(a, what)
    kind = _kind(name, old, b)
    name = _OF_TRUTHS.get(name, name) if old.dtype.is_bool else name
    value, places = lift(b), Places(old, indices)
    if value.ndim > places.rank:
        raise ArrayShapeError(
            f"{what}: a value of shape {told(value.shape)} for {places.rank} dimensions"
        )
    replace(old, _accumulated(name, old, places, value, kind), calling_span())


def _accumulated(name: str, x: Array, places: Places, value: Array, kind: DType) -> Array:
    """Return an array like `x` to which a value is added, or the like, at places."""
    value = places.fitting(value)
    if not places.count:
        return x
    fold, row = ACCUMULATED[name], UFUNCS[name]
    none = const(identity(fold, kind), kind)

    def at(indices: Indices) -> Expr:
        conditions, hits, region, left = places.hits(indices)
        if not left:
            conditions, hits = conditions + hits, []
        found = value.read_as(kind, spread(value, tuple(region)))
        hit = all_of(hits)
        found = found if hit is None else eq.where(hit, found, none)
        for c in reversed(left):
            variable, extent = c.value
            found = eq.reduce(fold, variable, extent, found)
        mine = x.at(indices)
        was = eq.cast(mine, kind)
        is_zero = name == "add" and was.op == "const" and was.value == 0
        made = eq.cast(found if is_zero else row(was, found), x.dtype)
        is_there = all_of(conditions)
        return made if is_there is None else eq.where(is_there, made, mine)

    return Array(x.shape, x.dtype, at)


def _kind(name: str, x: Array, b: Any) -> DType:
    """Return the type in which what goes to one element is accumulated.

    NumPy computes each step in the common type, and casts it to that of `x` whatever it loses.
    """
    value, kind = lift(b), x.dtype
    is_number = isinstance(b, (int, float)) and not isinstance(b, bool)
    is_extreme = ACCUMULATED[name] in ("max", "min")
    if is_number and kind.is_int and isinstance(b, int):
        common = kind if not is_extreme or const(b, kind).value == b else dtype_of("int64")
    else:
        _, common = promoted(name, (x, b), (x, value))
    is_kept = common == kind or (
        common.is_float if kind.is_float else kind.is_int and common.is_int and not is_extreme
    )
    if not is_kept:
        raise UnknownArrayFunction(
            f"np.{name}.at of {kind} and {value.dtype}: each step is cast from {common} to {kind}",
            hint=f'cast with astype("{kind}"), or let the first array be of {common}',
        )
    if kind.is_float:
        return eq.computed_in(common)
    return dtype_of("int32") if kind.is_bool or kind.bits < 32 else kind
