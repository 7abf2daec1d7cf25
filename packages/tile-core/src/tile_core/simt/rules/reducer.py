"""Accumulators across iterations: parts in the threads that add to them, added up at the end."""

from __future__ import annotations

from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.build_expr import binary, const, select
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.ir.stmt import Stmt, Store
from tile_core.layout import Fragment
from tile_core.layout.fragment import fully_replicated
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerInit
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import unrolled
from tile_core.simt.inverse_fragment import held
from tile_core.simt.lower_accesses import lower_expr
from tile_core.simt.rules.reduce import lower_reduce
from tile_core.simt.subbyte_access import carrier, converted, packed


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
    return lower_reduce(Reduce(op.kind, whole(copies), op.dst, 0, span=op.span), ctx)


def _shape(reducer: Buffer) -> tuple[int, ...]:
    shape = reducer.static_shape
    if shape is None:  # T.alloc_reducer refuses such extents
        raise InternalError(f"reducer {reducer.name!r} has no fixed extents", span=reducer.span)
    return shape


def reducer_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of accumulators across iterations."""
    return (
        Rule(name="simt.reducer_init", op=ReducerInit, lower=lower_init, infer_layout=infer_init),
        Rule(name="simt.reducer_finalize", op=ReducerFinalize, lower=lower_finalize),
    )
