"""The same storage through a box of another shape, or with elements of another width."""

from __future__ import annotations

import math

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.expr import Expr
from tile_core.layout.formulas import inputs
from tile_core.layout.index_tables import tabulate
from tile_core.layout.mixed_radix import flatten_row_major, substitute, unflatten_row_major

Exprs = tuple[Expr, ...]
Shape = tuple[int, ...]


def reshaped(
    exprs: Exprs, shape: Shape, box: Shape, new: Shape, num: int, den: int
) -> tuple[Exprs, Shape]:
    """Return the physical coordinates over the box `new`, and their own box.

    The layout is `exprs`, formulas over `shape` with values in `box`; `new` is in row-major
    correspondence to `shape`. Elements have `num` bits before and `den` after.

    Raises `LayoutError` as `Layout.reshape` says.
    """
    if num < 1 or den < 1 or (num % den and den % num):
        raise LayoutError(f"elements of {num} bits cannot be seen as elements of {den} bits")
    if math.prod(shape) * num != math.prod(new) * den:
        raise LayoutError(
            f"{_times(shape)} elements of {num} bits and {_times(new)} of {den} differ in size"
            if (num, den) != (1, 1)
            else f"{_times(shape)} elements cannot be reshaped to {_times(new)}"
        )
    flat = flatten_row_major(inputs(len(new)), new)
    if num == den:
        return _looked_up(exprs, flat, shape, new), box
    if not exprs:
        raise LayoutError("a layout without physical coordinates has no other element width")
    if num > den:
        parts = num // den
        wide = _looked_up(exprs, flat // parts, shape, new)
        last = substitute(wide[-1] * parts + flat % parts, inputs(len(new)), new)
        return (*wide[:-1], last), (*box[:-1], box[-1] * parts)
    group = den // num
    _check_groups(exprs, shape, box, group)
    narrow = _looked_up(exprs, flat * group, shape, new)
    last = substitute(narrow[-1] // group, inputs(len(new)), new)
    return (*narrow[:-1], last), (*box[:-1], box[-1] // group)


def _looked_up(exprs: Exprs, flat: Expr, shape: Shape, new: Shape) -> Exprs:
    coords = unflatten_row_major(flat, shape)
    return tuple(substitute(e, coords, new) for e in exprs)


def _check_groups(exprs: Exprs, shape: Shape, box: Shape, group: int) -> None:
    """Raise unless every aligned `group` of elements is one aligned run of the last coordinate."""
    *outer, last = (tabulate(e, shape).reshape(-1, group) for e in exprs)
    whole = all((column == column[:, :1]).all() for column in outer)
    aligned = not (last[:, 0] % group).any() and box[-1] % group == 0
    if not (whole and aligned and (last == last[:, :1] + np.arange(group)).all()):
        raise LayoutError(
            f"groups of {group} elements are not consecutive and aligned in storage, "
            "so they do not form wider elements"
        )


def _times(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "1"
