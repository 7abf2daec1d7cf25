"""Reductions as programs of one thread: of tiles, and of accumulators across iterations."""

from __future__ import annotations

import math

from tile_core.errors import InternalError, ShapeMismatch
from tile_core.ir.buffer import Buffer, Region, Scope, static_value, whole
from tile_core.ir.build_expr import as_expr, binary, const, select
from tile_core.ir.expr import BinaryOp, Expr, Extent, Var
from tile_core.ir.stmt import If, Parallel, Seq, Stmt, Store
from tile_core.layout import Fragment
from tile_core.layout.fragment import fully_replicated
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.layout.preimages import reduced_fragment
from tile_core.ops.loop_builders import nest as loops
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerInit
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.cross_warp_reduction import reduce_across_warps, row_plan
from tile_core.simt.expr_builders import do, unrolled
from tile_core.simt.inverse_fragment import held
from tile_core.simt.lower_accesses import lower_expr
from tile_core.simt.partition import partition
from tile_core.simt.shared_staging import Batch, batches, by_each_thread, copied_in
from tile_core.simt.subbyte_access import carrier, converted, packed, storage_dtype


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

    The copy is made in batches of rows where not all of it fits beside the kernel's tiles.
    """
    source, shape = op.src, op.src.static_extents
    if not source.buffer.scope.is_spread:
        return _by_rows(op, source, None, ctx)
    if shape is None:
        raise ShapeMismatch(
            "a reduction of registers needs extents known at compile time",
            span=op.span,
            hint="reduce a tile of fixed extents",
        )
    kept = [axis for axis in range(len(shape)) if axis != op.dim]
    nbytes = math.prod(shape) * storage_dtype(source.buffer.dtype, Scope.SHARED).bits // 8
    steps: list[Stmt] = []
    for batch in batches(shape, nbytes, kept, ctx) or (None,):
        part = source if batch is None else batch.of(source, batch.dim)
        tile = ctx.scratch_tile("rows", part.static_extents or (), str(source.buffer.dtype))
        rows = _by_rows(op, whole(tile), batch, ctx)
        steps += [copied_in(part, tile, tile.dtype, ctx), do("sync"), rows, do("sync")]
    return Seq(tuple(steps))


def _by_rows(op: Reduce, source: Region, batch: Batch | None, ctx: SimtContext) -> Stmt:
    """Let the threads of the result read the rows of `source`: of `op.src`, or of a batch of it.

    What each thread has for itself, each of them computes.
    """
    kept = [axis for axis in range(len(op.src.extents)) if axis != op.dim]
    if batch is not None:  # rows keep their numbers, of which the batch's first is not 0
        starts = tuple(-batch.first if d == batch.dim else 0 for d in range(len(source.starts)))
        source = replace(source, starts=starts)
    inner = replace(op, src=source)

    def row(at: tuple[Var, ...]) -> Stmt:
        body = inner.serial_form_at(at)
        return body if batch is None else If(batch.has(at[kept.index(batch.dim)]), body)

    extents = [op.src.extents[axis] for axis in kept]
    if op.dst.buffer.scope.is_thread_private:
        return by_each_thread(loops(extents, row), ctx)
    points = tuple(ctx.fresh_var(f"i{axis}") for axis in range(max(1, len(kept))))
    nest = Parallel(points, tuple(as_expr(n) for n in extents or (1,)), row(points), span=op.span)
    return partition(nest, _loop_of_rows(op, extents, ctx), ctx)


def _loop_of_rows(op: Reduce, kept: list[Extent], ctx: SimtContext) -> LoopLayout | None:
    """Let threads that hold a row compute it; rows in memory go round the threads."""
    shape = [static_value(n) for n in kept] or [1]
    box = tuple(n for n in shape if n is not None)
    if op.dst.buffer.scope.is_spread:
        return loop_over(ctx.fragment_of(op.dst.buffer).reshape(box))
    return planned(box, ctx.threads) if len(box) == len(shape) else None


def infer_init(op: ReducerInit, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Give every thread a copy of the whole accumulator, unless its loops make do with less.

    See `tile_core.passes.inference.reducer_layouts`.
    """
    shape = op.reducer.static_shape
    if shape is None or ctx.layout_of(op.reducer) is not None:
        return {}
    return {op.reducer: fully_replicated(shape, ctx.threads)}


def lower_init(op: ReducerInit, ctx: SimtContext) -> Stmt:
    """Return the start of each part: a start value counts once, in the first of an element's."""
    registers = ctx.places.flat(op.reducer)
    fragment = ctx.fragment_of(op.reducer)
    dtype = op.reducer.dtype
    identity = packed(converted(const(op.kind.identity(dtype), carrier(dtype)), dtype), dtype)
    if op.init is None:
        return unrolled(ctx, "r", fragment.slots, lambda r: Store(registers, (r,), identity))
    start = packed(converted(lower_expr(op.init, ctx), dtype), dtype)

    def first(slot: Expr) -> Stmt:
        replica = held(fragment, ctx.thread, slot).replica
        value = select(binary(BinaryOp.EQ, replica, 0), start, identity)
        return Store(registers, (slot,), value)

    return unrolled(ctx, "r", fragment.slots, first)


def lower_finalize(op: ReducerFinalize, ctx: SimtContext) -> Stmt:
    """Return the sum over all threads: the parts are one tile with a row per replica.

    Before   finalize_reducer sum acc -> total
    After    reduce sum parts[replica, ...], dim=0 -> total
    """
    fragment = ctx.fragment_of(op.reducer)
    shape = (fragment.replication, *_shape(op.reducer))
    copies = Buffer(
        ctx.names.fresh(f"{op.reducer.name}_parts"), shape,
        op.reducer.dtype, Scope.FRAGMENT, span=op.span,
    )  # fmt: skip
    ctx.places.layouts.known[copies] = Fragment(
        shape,
        forward_thread_fn=lambda rep, *x: fragment.forward_thread(*x, rep=rep),
        forward_index_fn=lambda rep, *x: (fragment.slot_at(*x),),
        threads=fragment.thread_extent,
    )
    ctx.places.flats[copies] = ctx.places.flat(op.reducer)
    parts = whole(copies)
    nan = op.nan_propagate
    return lower_reduce(Reduce(op.kind, parts, op.dst, 0, nan_propagate=nan, span=op.span), ctx)


def _shape(reducer: Buffer) -> tuple[int, ...]:
    shape = reducer.static_shape
    if shape is None:  # T.alloc_reducer refuses such extents
        raise InternalError(f"reducer {reducer.name!r} has no fixed extents", span=reducer.span)
    return shape
