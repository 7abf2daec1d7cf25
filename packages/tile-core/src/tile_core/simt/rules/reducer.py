"""Accumulators across iterations: a private copy in each thread, added up at the end."""

from __future__ import annotations

import math
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.arith import binary, cast, const, select
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.ir.stmt import Stmt, Store
from tile_core.layout import Fragment
from tile_core.layout.fragment import fully_replicated
from tile_core.ops.operator import InferContext, InferLevel, LayoutMap
from tile_core.ops.reduce import Reduce, ReducerFinalize, ReducerInit
from tile_core.ops.rule import Rule
from tile_core.simt.accesses import lower_expr
from tile_core.simt.build import unrolled
from tile_core.simt.context import SimtContext
from tile_core.simt.rules.reduce import lower_reduce


def infer_init(op: ReducerInit, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Give every thread a copy of the whole accumulator."""
    shape = op.reducer.static_shape
    if shape is None or ctx.layout_of(op.reducer) is not None:
        return {}
    return {op.reducer: fully_replicated(shape, ctx.threads)}


def lower_init(op: ReducerInit, ctx: SimtContext) -> Stmt:
    """Return the start of each copy: a start value counts once, in the first thread's."""
    registers = ctx.places.flat(op.reducer)
    identity = const(op.kind.identity(op.reducer.dtype), op.reducer.dtype)
    value: Expr = identity
    if op.init is not None:
        start = cast(lower_expr(op.init, ctx), op.reducer.dtype)
        value = select(binary(BinaryOp.EQ, ctx.thread, 0), start, identity)
    count = math.prod(_shape(op.reducer))
    return unrolled(ctx, "r", count, lambda slot: Store(registers, (slot,), value))


def lower_finalize(op: ReducerFinalize, ctx: SimtContext) -> Stmt:
    """Return the sum over all threads: the copies are one tile with a row per thread.

    Before   finalize_reducer sum acc -> total
    After    reduce sum copies[thread, ...], dim=0 -> total
    """
    shape = _shape(op.reducer)
    copies = Buffer(
        ctx.names.fresh(f"{op.reducer.name}_copies"), (ctx.threads, *shape),
        op.reducer.dtype, Scope.FRAGMENT, span=op.span,
    )  # fmt: skip
    ctx.places.layouts.known[copies] = Fragment(
        (ctx.threads, *shape), lambda thread, *x: (thread, *x), threads=ctx.threads
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
