"""Loops over tiles, and operators that are such loops, as statements of one thread."""

from __future__ import annotations

from tile_core.ir.stmt import Parallel, Stmt
from tile_core.simt.context import SimtContext
from tile_core.simt.partition import partition


def lower_parallel(loop: Parallel, ctx: SimtContext) -> Stmt:
    """Return what one thread does of a data-parallel loop; see `partition`."""
    return partition(loop, ctx.places.layouts.loop_of(loop), ctx)
