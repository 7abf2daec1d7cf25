"""Values of index expressions over whole boxes, as numpy tables, and questions about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from tile_core.errors import LayoutError
from tile_core.ir.expr import Expr
from tile_core.layout.formula_bounds import Reaches, reach
from tile_core.layout.formulas import as_index, evaluate, to_text

Table: TypeAlias = npt.NDArray[np.int64]

F = TypeVar("F", bound=Callable[..., object])

TABLE_LIMIT = 1 << 26
"""The most elements a box may have for its table to be built (half a gigabyte)."""


def remembered(count: int) -> Callable[[F], F]:
    """Let what a method says of the last `count` objects be kept: one kernel asks many times."""

    def keeping(method: F) -> F:
        return cast("F", lru_cache(maxsize=count)(method))

    return keeping


def box_coords(shape: Sequence[int]) -> list[Table]:
    """Return one int64 array per dimension, which broadcast to all coordinates of the box."""
    rank = len(shape)
    return [
        np.arange(extent, dtype=np.int64).reshape([-1 if k == axis else 1 for k in range(rank)])
        for axis, extent in enumerate(shape)
    ]


def check_size(shape: Sequence[int]) -> None:
    """Raise if a table over the box would be unreasonable.

    Raises `LayoutError` above `TABLE_LIMIT` elements.
    """
    if math.prod(shape) > TABLE_LIMIT:
        raise LayoutError(
            f"a box of {'x'.join(map(str, shape))} elements is too large for an exact answer",
            hint=f"tables end at {TABLE_LIMIT} elements; describe one tile of the buffer",
        )


def tabulate(expr: Expr, shape: Sequence[int]) -> Table:
    """Return the values of `expr` over the box, int64 of `shape`.

    Raises `LayoutError` if the box is too large, or a value on the way does not fit 64 bits.
    """
    check_size(shape)
    _check_width(expr, shape)
    value = evaluate(expr, box_coords(shape))
    return np.broadcast_to(np.asarray(value, dtype=np.int64), tuple(shape))


def _check_width(expr: Expr, shape: Sequence[int]) -> None:
    reaches = Reaches(tuple(shape))
    reaches.of(as_index(expr))
    lowest, highest = reaches.extremes()
    if lowest < -(1 << 62) or highest >= 1 << 62:
        raise LayoutError(f"{to_text(expr)} leaves the range of 64-bit integers")


def exact_bounds(expr: Expr, shape: Sequence[int]) -> tuple[int, int]:
    """Return the smallest and the largest value of `expr` over the box.

    Raises `LayoutError` if only the table can tell, and the box is too large for one.
    """
    r = reach(expr, shape)
    if r.is_exact:
        return r.lo, r.hi
    values = tabulate(expr, shape)
    return int(values.min()), int(values.max())


def distinct(values: Table) -> Table:
    """Return the different numbers among `values`, none of them negative, in ascending order."""
    top = int(values.max(initial=0)) + 1
    if top > 8 * values.size:
        ordered: Table = np.sort(values, axis=None)
        is_first = np.ones(ordered.shape, np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        return ordered[is_first]
    seen = np.zeros(top, dtype=np.bool_)
    seen[values.reshape(-1)] = True
    return np.flatnonzero(seen)


def has_duplicates(values: Table) -> bool:
    """Whether a number occurs twice."""
    flat = values.reshape(-1)
    lo, hi = int(flat.min()), int(flat.max())
    if hi - lo < 4 * flat.size:
        return bool(np.bincount(flat - lo).max() > 1)
    return distinct(flat - lo).size != flat.size


def aligned_runs(values: Table, axis: int) -> int:
    """Return the largest `v` dividing the extent of `axis` whose aligned groups count up by 1.

    Elements ``k*v ... k*v + v - 1`` along `axis` hold consecutive numbers, everywhere.
    """
    extent = values.shape[axis]
    lines = np.moveaxis(values, axis, -1).reshape(-1, extent)
    steps = (np.diff(lines, axis=-1) == 1).all(axis=0)  # steps[p]: from p to p + 1
    ends = np.flatnonzero(~steps) + 1  # a group must end before each of these
    return math.gcd(extent, *ends.tolist())
