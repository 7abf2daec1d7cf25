"""Loops over tiles, and operators that are such loops, as statements of one thread."""

from __future__ import annotations

from tile_core.ir.stmt import Parallel, Stmt
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import as_parallel
from tile_core.passes.lower_serially import nested_loops
from tile_core.simt.context import SimtContext
from tile_core.simt.pair_subbyte_stores import lower_paired
from tile_core.simt.partition import partition, unrolled
from tile_core.simt.vectorise import vectorise
from tile_core.simt.vectorise_async_copies import async_lanes


def lower_parallel(loop: Parallel, ctx: SimtContext) -> Stmt:
    """Return what one thread does of a data-parallel loop; see `partition`."""
    finish = async_lanes if loop.is_async else vectorise
    layout = ctx.places.layouts.loop_of(loop)
    return lower_paired(loop, layout, ctx) or partition(loop, layout, ctx, finish)


def lower_element_wise(op: TileOperator, ctx: SimtContext) -> Stmt:
    """Return what one thread does of an operator that is a loop over elements.

    Before   fill C, 0
    After    for r in unrolled(4): C[r] = 0

    Where an operand is each thread's own, every thread runs the whole loop on its copy.
    """
    loop = as_parallel(op)
    if any(buffer.scope.is_thread_private for buffer in op.buffers()):
        return ctx.lower_stmt(unrolled(nested_loops(loop)))
    return partition(loop, ctx.places.layouts.loop_of(op), ctx)
