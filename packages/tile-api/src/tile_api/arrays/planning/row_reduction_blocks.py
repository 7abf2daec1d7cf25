"""Blocks of sums over long rows on a processor: several places of memory are read at once.

One stream of memory waits wherever a page ends. Four of them wait together, and a core gets half
as much again: four rows, a piece of each at a time, or four parts of one that is by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tile_api.arrays.equations.expressions import Expr, walk
from tile_api.arrays.equations.sizes import usual
from tile_api.arrays.planning.plan import Blocks, Plan
from tile_api.arrays.planning.traffic import FUNCTIONS, Machine
from tile_core.dtypes import DType

TOGETHER = 4
"""Rows that are read at once."""

NEAR_BYTES = 8192
"""Of the pieces of rows that are read at once, and of rows that are long."""

SHORT_BYTES = 1024
"""Of rows that are short: others up to long ones are read whole, in the order of memory."""

WHOLE, FEWEST_WHOLE = 65_536, 32
"""Elements of the whole rows of a block, and the fewest of these rows."""

ALONE = 65_536
"""Elements of a piece of a row by itself: a part of it is many pages."""


def blocks_of_row_reduction(
    plan: Plan, dtypes: Mapping[str, DType], machine: Machine
) -> Blocks | None:
    """Return blocks of a kernel that does nothing but add up long rows as they lie; else None."""
    stream = plan.stream
    if machine.rows > 1 or stream is None or plan.columns or not _only_adds(plan):
        return None
    extent = usual(plan.axes[stream].extent)
    loads = [n for s in plan.states for n in walk(s.body) if n.op == "load" and stream in n.free]
    rows = [n for n in loads if len(n.free) > 1 or plan.row is None]
    nbytes = max((dtypes[n.value].bits / 8 for n in loads if n.value in dtypes), default=0)
    if not rows or not nbytes or not all(_is_in_order(n, stream) for n in loads):
        return None
    count = usual(plan.axes[plan.row].extent) if plan.row is not None else 1
    if extent * nbytes < NEAR_BYTES:
        many = min(count // machine.peaks.units, WHOLE // extent)
        is_short = many < FEWEST_WHOLE or extent * nbytes < SHORT_BYTES
        return None if is_short else replace(plan.blocks, rows=many, resident=WHOLE)
    piece = int(NEAR_BYTES / nbytes / TOGETHER)
    blocks = replace(plan.blocks, rows=TOGETHER, stream=piece, resident=0)
    count *= math.prod(usual(plan.axes[v].extent) for v in plan.grid)
    if plan.row is not None and count >= TOGETHER * machine.peaks.units:
        return blocks
    return replace(blocks, rows=1, stream=min(ALONE, extent))


def _only_adds(plan: Plan) -> bool:
    """Tell whether states are independent folds of elements that take no function."""
    bodies = [s.body for s in plan.states]
    along = any(plan.stream in o.element.free for o in plan.finals)
    plain = all(s.kind in ("sum", "max", "min") and s.correct is None for s in plan.states)
    is_once = len({s.sweep for s in plan.states}) == 1
    nodes = [*walk(*bodies)]
    return is_once and plain and not along and not any(
        n.op in FUNCTIONS or n.op in ("reduce", "carry", "scan") for n in nodes
    )  # fmt: skip


def _is_in_order(x: Expr, stream: str) -> bool:
    """Tell whether elements along the stream are neighbours in memory."""
    *others, last = x.args
    return last.op == "index" and last.value[0] == stream and not any(
        stream in i.free for i in others
    )  # fmt: skip
