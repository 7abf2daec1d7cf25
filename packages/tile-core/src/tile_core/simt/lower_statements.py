"""The walk from tile IR to the program of one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tile_core.errors import InternalError
from tile_core.ir.buffer import Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Call, Expr, Load
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Break,
    Check,
    CheckKind,
    Continue,
    Evaluate,
    For,
    Hint,
    If,
    Let,
    LoopKind,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.control import Barrier
from tile_core.ops.operator import TileOperator
from tile_core.ops.reducer import ReducerUpdate
from tile_core.passes.drop_gpu_hints import is_gpu_hint
from tile_core.passes.guards.registry import located, open_registry
from tile_core.records import replace
from tile_core.simt.barrier_calls import lacks_instruction
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_parallel
from tile_core.simt.explicit_instructions import lower_gpu_call, names_instruction
from tile_core.simt.expr_builders import do
from tile_core.simt.lower_accesses import lower_evaluate, lower_expr, lower_store
from tile_core.simt.rules.control import lower_barrier
from tile_core.simt.subbyte_access import named
from tile_core.simt.subbyte_store_pairing import NO_RUNS
from tile_core.simt.thread_subsets import lower_on_threads
from tile_core.simt.vectorise import vectorise

NOTHING = Seq(())

_ACTS = Effect.WRITES | Effect.ATOMIC | Effect.OUTPUT


def lower_body(body: Stmt, ctx: SimtContext) -> Stmt:
    """Return the body of a launch as each thread of the block runs it: see `lower_stmt`.

    Where threads form a box, the one number of a thread stands in front.
    """
    lowered = lower_stmt(body, ctx)
    if any(ctx.thread is var for var in ctx.launch.thread_vars):
        return lowered
    x, y, z = ctx.launch.thread_vars
    threads = ctx.launch.threads
    number = binary(BinaryOp.ADD, x, (z * threads[1] + y) * threads[0])
    return Seq((Let(ctx.thread, number), lowered))


def lower_stmt(stmt: Stmt, ctx: SimtContext) -> Stmt:
    """Return `stmt` as each thread of the block runs it.

    Before   gemm A_shared, B_shared, C_local;  C[bx] = s  (one statement of the block)
    After    what gemm's rule makes of it;  if tid == 0: C[bx] = s

    Operators are lowered by their rules, loops over tiles are spread over the threads, and
    every access becomes flat. In a program that never speaks of threads, an element outside
    of thread-private memory is written by the first thread alone.
    """
    registry = open_registry()
    if registry is None:
        return _lower(stmt, ctx)
    with located(registry, stmt):
        return _lower(stmt, ctx)


def _lower(stmt: Stmt, ctx: SimtContext) -> Stmt:
    lowering = _LOWERINGS.get(type(stmt))
    if lowering is not None:
        lowered = lowering(stmt, ctx)
        return lowered if isinstance(stmt, Seq) else _spanned(lowered, stmt)
    if isinstance(stmt, TileOperator):
        return _spanned(cast("Stmt", ctx.rule_of(stmt).lower(stmt, ctx)), stmt)
    raise InternalError(f"no lowering for {type(stmt).__name__}", span=stmt.span)


def _seq(stmt: Seq, ctx: SimtContext) -> Stmt:
    lowered: list[Stmt] = []
    for item in stmt.body:
        part = lower_stmt(item, ctx)
        lowered.extend(part.body if isinstance(part, Seq) else (part,))
        ctx = after(item, ctx)
    return Seq(tuple(lowered), span=stmt.span)


def after(stmt: Stmt, ctx: SimtContext) -> SimtContext:
    """Return what is known to the statements that follow `stmt` in its sequence."""
    match stmt:
        case Let(var=var, value=value):
            ctx = replace(ctx, runs=ctx.runs.naming(stmt))
            return ctx.knowing(ctx.env.with_let(var, value))
        case Check(cond=cond):
            return ctx.knowing(ctx.env.assuming(cond))
        case AnnotateSafeValue(buffer=buffer, value=value):
            return replace(ctx, safe_values={**ctx.safe_values, buffer: value})
    return ctx


def _let(stmt: Let, ctx: SimtContext) -> Stmt:
    named_value = replace(stmt, value=named(lower_expr(stmt.value, ctx), stmt.var.dtype))
    if ctx.threads == 1 or ctx.by_thread or not _acts(stmt.value):
        return named_value
    return _told_by_one_thread(named_value, ctx)


def _told_by_one_thread(stmt: Let, ctx: SimtContext) -> Stmt:
    """Return a name whose value one thread finds and all others hear of.

    Before   old = atomic_add(A[0], 1)
    After    if tid == 0: told[0] = atomic_add(A[0], 1);  barrier;  old = told[0];  barrier
    """
    told = ctx.workspace(f"{stmt.var.name}_told", 1, str(stmt.var.dtype))
    first = as_expr(0)
    sync = do("sync", span=stmt.span)
    found = by_one_thread(Store(told, (first,), stmt.value, span=stmt.span), ctx)
    return Seq((found, sync, replace(stmt, value=Load(told, (first,))), sync))


def _alloc(stmt: Alloc, ctx: SimtContext) -> Stmt:
    """Keep what is the thread's own; the block's memory is planned apart."""
    if stmt.buffer.scope in (Scope.SHARED, Scope.BARRIER, Scope.GLOBAL):
        return NOTHING
    return replace(stmt, buffer=ctx.places.flat(stmt.buffer))


def _store(stmt: Store, ctx: SimtContext) -> Stmt:
    lowered, scope = lower_store(stmt, ctx), stmt.buffer.scope
    is_private = scope.is_thread_private or scope is Scope.FRAGMENT
    return lowered if is_private else by_one_thread(lowered, ctx)


def _update(stmt: ReducerUpdate, ctx: SimtContext) -> Stmt:
    return _store(stmt.serial_form(), ctx)


def _evaluate(stmt: Evaluate, ctx: SimtContext) -> Stmt:
    if isinstance(stmt.value, Call) and names_instruction(stmt.value):
        if is_gpu_hint(stmt) and lacks_instruction(stmt.value, ctx):
            return NOTHING
        return replace(stmt, value=lower_gpu_call(stmt.value, ctx))
    lowered = lower_evaluate(stmt, ctx)
    return by_one_thread(lowered, ctx) if _acts(stmt.value) else lowered


def _acts(value: Expr) -> bool:
    """Whether evaluating twice differs from evaluating once."""
    return any(bool(effect_of(n.function) & _ACTS) for n in nodes_of(value, Call))


def by_one_thread(stmt: Stmt, ctx: SimtContext) -> Stmt:
    """Return `stmt` for the first thread alone, unless the program itself names threads."""
    if ctx.threads == 1 or ctx.by_thread:
        return stmt
    return If(binary(BinaryOp.EQ, ctx.thread, 0), stmt, span=stmt.span)


def _for(stmt: For, ctx: SimtContext) -> Stmt:
    start, stop, step = (lower_expr(e, ctx) for e in (stmt.start, stmt.stop, stmt.step))
    inner = replace(ctx, env=ctx.env.in_loop(stmt), runs=ctx.runs.within(stmt, ctx.env))
    lowered = For(
        stmt.var, start, stop, step, lower_stmt(stmt.body, inner), stmt.kind, span=stmt.span
    )
    return vectorise(lowered, ctx) if stmt.kind is LoopKind.VECTORIZED else lowered


def _pipelined(stmt: Pipelined, ctx: SimtContext) -> Stmt:
    """Run the iterations one after the other: what could be overlapped was rewritten before."""
    return _for(For(stmt.var, stmt.start, stmt.stop, as_expr(1, stmt.var.dtype), stmt.body,
                    span=stmt.span), ctx)  # fmt: skip


def _while(stmt: While, ctx: SimtContext) -> Stmt:
    body = lower_stmt(stmt.body, replace(ctx, runs=NO_RUNS))
    return replace(stmt, cond=lower_expr(stmt.cond, ctx), body=body)


def _if(stmt: If, ctx: SimtContext) -> Stmt:
    ctx = replace(ctx, runs=ctx.runs.under(stmt.cond))
    yes = ctx.assuming(stmt.cond)
    no = ctx.assuming(stmt.cond, holds=False)
    otherwise = None if stmt.otherwise is None else lower_stmt(stmt.otherwise, no)
    return If(lower_expr(stmt.cond, ctx), lower_stmt(stmt.then, yes), otherwise, span=stmt.span)


def _check(stmt: Check, ctx: SimtContext) -> Stmt:
    """Keep assertions; assumptions have done their work in what is known."""
    if stmt.kind is CheckKind.ASSUME:
        return NOTHING
    return replace(stmt, cond=lower_expr(stmt.cond, ctx))


def _nothing(stmt: Stmt, ctx: SimtContext) -> Stmt:
    return NOTHING


def _unchanged(stmt: Stmt, ctx: SimtContext) -> Stmt:
    return stmt


def _spanned(lowered: Stmt, origin: Stmt) -> Stmt:
    """Give statements that have no place of their own that of the operator they came from."""
    if isinstance(lowered, Seq):
        return replace(lowered, body=tuple(_spanned(s, origin) for s in lowered.body))
    return lowered if lowered.span is not None else replace(lowered, span=origin.span)


_LOWERINGS: dict[type, Callable[[Any, SimtContext], Stmt]] = {
    Seq: _seq,
    Let: _let,
    Alloc: _alloc,
    Store: _store,
    Evaluate: _evaluate,
    For: _for,
    Parallel: lower_parallel,
    Pipelined: _pipelined,
    While: _while,
    If: _if,
    OnThreads: lower_on_threads,
    Check: _check,
    Break: _unchanged,
    Continue: _unchanged,
    Hint: _nothing,
    AnnotateLayout: _nothing,
    AnnotateSafeValue: _nothing,
    ReducerUpdate: _update,
    Barrier: lower_barrier,  # most are inserted after rules were chosen
}
