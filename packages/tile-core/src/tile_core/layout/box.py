"""The boxes of a layout: extents, and the formulas that map one box into another."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tile_core.errors import ControlFlowError, LayoutError, TileError
from tile_core.ir.expr import Expr
from tile_core.layout.formula_bounds import reach
from tile_core.layout.formulas import as_index, branches, to_text
from tile_core.layout.index_tables import exact_bounds

Forward: TypeAlias = Callable[..., Any] | Sequence[Any]


def extents_of(shape: Sequence[int] | int) -> tuple[int, ...]:
    """Return `shape` as a tuple of integers >= 1, or raise `LayoutError`."""
    try:
        items = (shape,) if not isinstance(shape, Sequence) else tuple(shape)
        box = tuple(operator.index(extent) for extent in items)
    except TypeError:
        raise LayoutError(
            f"the extents of a layout are integers known at compile time, got {shape!r}",
            hint="write the shape as a tuple of ints, such as (64, 32)",
        ) from None
    if any(extent < 1 for extent in box):
        raise LayoutError(
            f"the extents of a layout are at least 1, got {box}",
            hint="write the shape as a tuple of ints, such as (64, 32)",
        )
    return box


def call_forward(forward: Callable[..., Any], coords: Sequence[Expr]) -> Any:
    """Return what the user's function gives for `coords`; its own failure is a `LayoutError`."""
    try:
        return forward(*coords)
    except LayoutError:
        raise
    except ControlFlowError as error:
        raise branches() from error
    except TileError as error:
        raise LayoutError(error.message, hint=error.hint) from error
    except TypeError as error:
        raise LayoutError(
            f"the layout function fails on {len(coords)} coordinates: "
            f"{str(error).rpartition('<locals>.')[2]}",
            hint="it takes one coordinate per dimension, and computes with + - * // % ^",
        ) from error


def apply_forward(forward: Forward, coords: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the expressions that `forward`, a function or a sequence, gives for `coords`."""
    if callable(forward):
        forward = call_forward(forward, coords)
    if isinstance(forward, (list, tuple)):
        return tuple(as_index(e) for e in forward)
    return (as_index(forward),)


def physical_box(
    exprs: Sequence[Expr], shape: tuple[int, ...], given: Sequence[int] | None
) -> tuple[int, ...]:
    """Return the physical box: the exact bounds of `exprs`, or `given` if those lie in it."""
    box = []
    for number, expr in enumerate(exprs):
        cheap = reach(expr, shape)
        room = None if given is None or number >= len(given) else given[number]
        if room is not None and cheap.lo >= 0 and cheap.hi < room:
            box.append(cheap.hi + 1)
            continue
        lo, hi = exact_bounds(expr, shape)
        if lo < 0:
            raise LayoutError(
                f"physical coordinate {number}, {to_text(expr)}, is negative: it goes down to {lo}",
                hint=f"add {-lo}: the first place is 0",
            )
        box.append(hi + 1)
    if given is None:
        return tuple(box)
    outer = extents_of(given)
    if len(outer) != len(box) or any(have > room for have, room in zip(box, outer, strict=True)):
        raise LayoutError(
            f"the physical coordinates need {tuple(box)}, which is not inside {outer}",
            hint="leave the output shape out, or make it larger",
        )
    return outer


def normal_axis(axis: int, rank: int) -> int:
    """Return `axis` counted from the front, or raise `LayoutError` if there is none such."""
    if not -rank <= axis < rank:
        raise LayoutError(
            f"there is no dimension {axis} among {rank}",
            hint=f"use a dimension between {-rank} and {rank - 1}",
        )
    return axis % rank
