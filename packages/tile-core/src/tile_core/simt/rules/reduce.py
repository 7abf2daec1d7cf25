"""Reductions as programs of one thread: among the holders of a tile, or by way of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_core.errors import ShapeMismatch
from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Scope, static_value, whole
from tile_core.ir.expr import Extent
from tile_core.ir.stmt import Parallel, Seq, Stmt
from tile_core.layout import Fragment
from tile_core.layout.loop import LoopLayout, planned
from tile_core.layout.loop_inverse import loop_over
from tile_core.layout.preimages import reduced_fragment
from tile_core.ops.reduce import Reduce
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.cross_warp_reduction import reduce_across_warps, row_plan
from tile_core.simt.expr_builders import do
from tile_core.simt.partition import partition
from tile_core.simt.shared_staging import by_each_thread, copied_in


def infer_reduce(op: Reduce, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Give the result to the threads that hold its row, once the source is known."""
    source = ctx.layout_of(op.src.buffer)
    target = op.dst.buffer
    if (
        level is InferLevel.STRICT
        or target.scope is not Scope.FRAGMENT
        or not (op.src.is_whole and op.dst.is_whole)
        or target.static_shape is None
        or ctx.layout_of(target) is not None
    ):
        return {}
    if isinstance(source, Fragment):
        return {target: reduced_fragment(source, op.dim).reshape(target.static_shape)}
    if level is InferLevel.FREE and op.src.buffer.scope is not Scope.FRAGMENT and ctx.threads:
        return {target: planned(target.static_shape, ctx.threads, holds_tiles=True).fragment}
    return {}


def lower_reduce(op: Reduce, ctx: SimtContext) -> Stmt:
    """Return the reduction as each thread runs it.

    Before   reduce sum scores, dim=1 -> total
    After    part[r] over the thread's own registers;  part[r] += shuffled part[r];
             across warps: part to shared memory, barrier, sum of the warps' parts, barrier

    The parts of a row that one thread holds are combined first; lanes then exchange by
    shuffles, warps through shared memory. Replicas of an element count once. Where the
    layout is too irregular for that the tile goes through shared memory.
    """
    plan = row_plan(op, ctx)
    return _through_memory(op, ctx) if plan is None else reduce_across_warps(op, plan, ctx)


def _through_memory(op: Reduce, ctx: SimtContext) -> Stmt:
    """Let the threads of the result read the rows, from memory or from a copy in it.

    What each thread has for itself, each of them computes.
    """
    source, shape = op.src, op.src.static_extents
    before: list[Stmt] = []
    after: list[Stmt] = []
    if source.buffer.scope.is_spread:
        if shape is None:
            raise ShapeMismatch(
                "a reduction of registers needs extents known at compile time",
                span=op.span,
                hint="reduce a tile of fixed extents",
            )
        tile = ctx.scratch_tile("rows", shape, str(source.buffer.dtype))
        before = [copied_in(source, tile, tile.dtype, ctx), do("sync")]
        after = [do("sync")]
        source = whole(tile)
    if op.dst.buffer.scope.is_thread_private:
        each = by_each_thread(replace(op, src=source).serial_form(), ctx)
        return Seq((*before, each, *after))
    kept = [n for axis, n in enumerate(op.src.extents) if axis != op.dim]
    points = tuple(ctx.fresh_var(f"i{axis}") for axis in range(max(1, len(kept))))
    body = replace(op, src=source).serial_form_at(points)
    nest = Parallel(points, tuple(as_expr(n) for n in kept or (1,)), body, span=op.span)
    return Seq((*before, partition(nest, _loop_of_rows(op, kept, ctx), ctx), *after))


def _loop_of_rows(op: Reduce, kept: list[Extent], ctx: SimtContext) -> LoopLayout | None:
    """Let threads that hold a row compute it; rows in memory go round the threads."""
    shape = [static_value(n) for n in kept] or [1]
    box = tuple(n for n in shape if n is not None)
    if op.dst.buffer.scope.is_spread:
        return loop_over(ctx.fragment_of(op.dst.buffer).reshape(box))
    return planned(box, ctx.threads) if len(box) == len(shape) else None


def reduce_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of reductions."""
    return (Rule(name="simt.reduce", op=Reduce, lower=lower_reduce, infer_layout=infer_reduce),)
