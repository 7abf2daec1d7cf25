"""Addresses in swizzled tiles that move in steps: the thread's part once, each step cheap.

The address of an element of a swizzled tile mixes the coordinates by exclusive or, and written
out in full it costs a dozen instructions. Where the steps of a loop touch other bits than the
threads do, it is ``(base ^ constant) + constant``, with `base` computed once per thread. The
form is found from the tables of the layout and holds for every thread and step, or is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tile_core.ir.buffer import Region, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import AddressOf, Const, Expr, Extent
from tile_core.ir.stmt import Let, Stmt
from tile_core.layout import Layout
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, seq

Ints: TypeAlias = npt.NDArray[np.int64]

ThreadPosition: TypeAlias = Callable[[Any], tuple[Any, Any]]
"""Row and column of a thread, given its index: an expression, or an array of integers."""


@dataclass(frozen=True, slots=True)
class Step:
    """A loop of `count` iterations, each `rows` and `columns` further."""

    count: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class InductionPattern:
    """An address in iteration `u`: ``(base ^ u % period * flip) + u // period * stride``."""

    count: int
    period: int
    flip: int
    stride: int

    def moved(self, base: Any, offset: Any, u: Any) -> tuple[Any, Any]:
        """Return the two parts of the address, `base` and `offset`, in iteration `u`."""
        if self.flip:
            base = base ^ (u if self.period >= self.count else u % self.period) * self.flip
        if self.stride:
            offset = offset + (u if self.period == 1 else u // self.period) * self.stride
        return base, offset


@dataclass(frozen=True, slots=True)
class InductionAddress:
    """Where a thread's element lies in each iteration.

    `setup` must run before, once; `of` gives the address, given the index of each loop.
    """

    setup: Stmt
    of: Callable[..., AddressOf]


def induction_address(
    ctx: SimtContext, name_hint: str, region: Region, place: ThreadPosition, steps: Sequence[Step]
) -> InductionAddress:
    """Return the addresses of a thread's elements in the last two dimensions of a shared tile.

    `name_hint` names the variable that holds the thread's part, `place` the thread's element in
    the first iteration, from the origin of `region`; `steps` are the loops around the access.
    """
    cadences = _cadences(ctx, region, place, steps)
    lead = None if cadences is None else _lead_offset(ctx, region)
    if cadences is None or lead is None:
        return InductionAddress(seq(), _written_out(ctx, region, place, steps))
    layout = ctx.layout_of(region.buffer)
    first, second = (static_value(s) or 0 for s in region.starts[-2:])
    row, column = (as_expr(x) for x in place(ctx.thread))
    at_row, at_column, base = (
        ctx.fresh_var(f"{name_hint}_{what}") for what in ("row", "column", "at")
    )
    start = as_expr(layout.address(*(0,) * (layout.rank - 2), at_row, at_column))
    setup = [Let(at_row, row + first), Let(at_column, column + second), Let(base, start)]
    if not isinstance(lead, Const):
        moved = ctx.fresh_var(f"{name_hint}_tile", str(lead.dtype))
        setup.append(Let(moved, lead))
        lead = moved
    flat = ctx.places.flat(region.buffer)

    def of(*iterations: Expr) -> AddressOf:
        turned: Expr = base
        offset = lead
        for u, cadence in zip(iterations, cadences, strict=True):
            turned, offset = cadence.moved(turned, offset, u)
        return at(flat, turned + offset, "r")

    return InductionAddress(seq(setup), of)


def _written_out(
    ctx: SimtContext, region: Region, place: ThreadPosition, steps: Sequence[Step]
) -> Callable[..., AddressOf]:
    def of(*iterations: Expr) -> AddressOf:
        row, column = place(ctx.thread)
        for u, step in zip(iterations, steps, strict=True):
            row, column = row + u * step.rows, column + u * step.columns
        *lead, first, second = region.starts
        return ctx.address(region.buffer, *lead, row + first, column + second, access="r")

    return of


def _lead_offset(ctx: SimtContext, region: Region) -> Expr | None:
    """Return how far the leading coordinates move every element, None if they do otherwise."""
    layout = ctx.layout_of(region.buffer)
    lead: tuple[Extent, ...] = region.starts[:-2]
    if all(static_value(x) == 0 for x in lead):
        return as_expr(0)
    if not leads_by_offset(layout):
        return None
    zeros = (0,) * len(lead)
    offset = layout.address(*map(as_expr, lead), as_expr(0), as_expr(0))
    return as_expr(offset) - int(layout.address(*zeros, 0, 0))


def leads_by_offset(layout: Layout) -> bool:
    """Whether leading coordinates add the same to the address of every row and column."""
    tiles = layout.linear_table().reshape(-1, layout.shape[-2] * layout.shape[-1])
    return bool((np.ptp(tiles - tiles[:1], axis=1) == 0).all())


def addresses(
    layout: Layout, region: Region, place: ThreadPosition, steps: Sequence[Step], threads: int
) -> Ints | None:
    """Return the addresses of all threads in all iterations, leading coordinates being 0.

    The shape is ``(threads, count of each step ...)``; None if the region has no fixed origin.
    """
    origin = [static_value(s) for s in region.starts[-2:]]
    if origin[0] is None or origin[1] is None:
        return None
    row, column = (np.asarray(x) for x in place(np.arange(threads)))
    row, column = np.broadcast_arrays(row + origin[0], column + origin[1], np.arange(threads))[:2]
    for step in steps:
        iterations = np.arange(step.count)
        row = row[..., None] + iterations * step.rows
        column = column[..., None] + iterations * step.columns
    zeros = (0,) * (layout.rank - 2)
    table: Ints = layout.linear_table()[zeros][row, column]
    return table


def _cadences(
    ctx: SimtContext, region: Region, place: ThreadPosition, steps: Sequence[Step]
) -> tuple[InductionPattern, ...] | None:
    table = addresses(ctx.layout_of(region.buffer), region, place, steps, ctx.threads)
    if table is None:
        return None
    found = []
    for axis in range(len(steps)):
        alone = np.moveaxis(table, axis + 1, 1).reshape(ctx.threads, steps[axis].count, -1)
        cadence = _cadence(alone[..., 0])
        if cadence is None:
            return None
        found.append(cadence)
    return tuple(found) if _holds(table, found) else None


def _cadence(line: Ints) -> InductionPattern | None:
    """Return the shortest period that explains the iterations of one loop, starting anywhere."""
    count = line.shape[1]
    period = 1
    while period < 2 * count:
        flip = int(line[0, 1] ^ line[0, 0]) if period > 1 and count > 1 else 0
        stride = int(line[0, period] - line[0, 0]) if period < count else 0
        cadence = InductionPattern(count, period, flip, stride)
        base, offset = cadence.moved(line[:, :1], 0, np.arange(count))
        if np.array_equal(np.broadcast_to(base + offset, line.shape), line):
            return cadence
        period *= 2
    return None


def _holds(table: Ints, cadences: Sequence[InductionPattern]) -> bool:
    """Whether the loops together do what each does alone."""
    turned: Any = table.reshape(table.shape[0], -1)[:, 0]
    offset: Any = np.zeros_like(turned)
    for cadence in cadences:
        turned, offset = cadence.moved(
            turned[..., None], offset[..., None], np.arange(cadence.count)
        )
        turned, offset = np.broadcast_arrays(turned, offset)
    return bool(np.array_equal(np.broadcast_to(turned + offset, table.shape), table))
