"""Data-parallel loops as loops of vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Call, Expr, Load, Var
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, contains, nodes_of, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateSafeValue,
    For,
    Hint,
    If,
    Let,
    Parallel,
    Seq,
    Stmt,
    Store,
)
from tile_core.ops.reducer import ReducerUpdate
from tile_core.passes.guards.registry import at_the_edge
from tile_core.passes.lower_serially import nested_loops
from tile_cpu.lowering.context import Context, Lane
from tile_cpu.lowering.index_set_splitting import stretches
from tile_cpu.lowering.invariants import hoisted
from tile_cpu.lowering.loops import counted
from tile_cpu.lowering.overflow import learn
from tile_cpu.lowering.row_reductions import RowSums, can_sum, updates_of, vector_update
from tile_cpu.lowering.types import lanes_of, memory_type, number, scalar_name
from tile_cpu.lowering.vector_access import (
    NotVectorisable,
    first_lane,
    lane_stride,
    varies,
    vector_store,
)
from tile_cpu.lowering.whole_tile_bounds_check import Whole, whole_tile
from tile_cpu.passes.row_loops import PREFETCH_NEXT_ITERATION, READ_IN_ORDER
from tile_cpu.tir.build import allocate, i32, prim, scratch, seq, with_lanes
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import ForKind, IfThenElse, IntImm, PrimExpr, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar

_EFFECTS = Effect.ATOMIC | Effect.STATE | Effect.OUTPUT | Effect.WARP | Effect.BLOCK


def vectorised(ctx: Context, loop: Parallel) -> TirStmt | None:
    """Return `loop` with one index in the lanes of vectors, or None if its body forbids it.

    Before   parallel i, j in (64, 64): B[i, j] = f(A[bx*64 + i, j])
    After    if the whole tile lies inside A: for i: for v in 4: vector loads and stores
             else: for i: for v in 4: the same with masks

    The index chosen is the innermost along which every store is contiguous. Lanes that a
    guard excludes are masked, never branched around.
    """
    var = _lane_variable(ctx, loop)
    if var is None:
        return None
    try:
        with ctx.attempt():
            return _emit(ctx, loop, var)
    except NotVectorisable:
        return None


def _lane_variable(ctx: Context, loop: Parallel) -> Var | None:
    private = {n.buffer for n in nodes_of(loop.body, Alloc)}
    if any(not _is_supported(node, private) for node in walk(loop.body)):
        return None
    stores = [n for n in nodes_of(loop.body, Store) if n.buffer not in private]
    sums = updates_of(loop)
    if sums:  # may follow the last index alone
        candidates = [loop.vars[-1]] if can_sum(ctx, loop, loop.vars[-1]) else []
    elif stores:
        pairs = zip(reversed(loop.vars), reversed(loop.extents), strict=True)
        candidates = [var for var, extent in pairs if static_value(extent) != 1]
    else:
        return None
    with ctx.scope(_inside(ctx, loop)), ctx.statement():
        for let in nodes_of(loop.body, Let):
            ctx.env = ctx.env.with_let(let.var, let.value)
        extents = dict(zip(loop.vars, loop.extents, strict=True))
        for var in candidates:
            lanes = lanes_for(ctx, loop.body, static_value(extents[var]))
            strides = (lane_stride(ctx, ctx.place(s.buffer), s.indices, var, lanes) for s in stores)
            if set(strides) <= {1}:
                return var
    return None


def _is_supported(node: Node, private: set[Buffer]) -> bool:
    """Whether the vectoriser knows what to do with a node of a loop's body."""
    match node:
        case Call(function=function):
            return not (function.startswith("extern:") or effect_of(function) & _EFFECTS)
        case Alloc(buffer=buffer):
            return buffer.scope.is_thread_private and buffer.static_shape is not None
        case Store(buffer=buffer):
            return buffer in private or not buffer.storage.scope.is_thread_private
    return isinstance(
        node, (Seq, Let, If, For, AnnotateSafeValue, Hint, ReducerUpdate, Expr, Buffer)
    )


def _inside(ctx: Context, loop: Parallel) -> Any:
    env = ctx.env
    for var, extent in zip(loop.vars, loop.extents, strict=True):
        env = env.with_loop(var, 0, extent)
    return env


def lanes_for(ctx: Context, body: Node, extent: int | None) -> int:
    """Return how many elements a vector holds: as many as fit, fewer for short loops."""
    widest = max((_bits(d) for d in _element_types(body)), default=32)
    lanes = ctx.machine.lanes(max(8, widest))
    if extent is not None:
        while lanes > 2 and lanes >= 2 * extent:
            lanes //= 2
        half = lanes // 2
        if extent % lanes and half >= 4 and extent % half == 0:
            lanes = half
    return lanes


def _bits(dtype: DType) -> int:
    if dtype.is_float or dtype.is_int:
        return max(32 if dtype.is_float else 8, dtype.bits)
    return 8


def _element_types(body: Node) -> Iterator[DType]:
    """Yield the types of values in `body`; pure moves of one type count as stored."""
    stores = [*nodes_of(body, Store)]
    sums = contains(body, ReducerUpdate)
    if not sums and all(
        isinstance(s.value, Load) and s.value.dtype.base == s.buffer.dtype.base for s in stores
    ):
        for store in stores:
            yield _stored(store.buffer.dtype)
        return
    for node in walk(body):
        if isinstance(node, Store):
            yield node.buffer.dtype
            for inner in nodes_of(node.value, Expr):
                if not inner.dtype.is_handle:
                    yield inner.dtype
        elif isinstance(node, Let):
            yield node.value.dtype
        elif isinstance(node, ReducerUpdate):
            yield node.reducer.dtype


def _stored(dtype: DType) -> DType:
    """Return an integer type as wide as an element in memory."""
    return dtype_of(f"int{max(8, dtype.bits)}") if dtype.bits in (8, 16, 32, 64) else dtype


def _emit(ctx: Context, loop: Parallel, var: Var) -> TirStmt:
    with ctx.statement() as statements, ctx.scope(_inside(ctx, loop)):
        plan = whole_tile(ctx, loop)
        condition = None if plan.condition is None else ctx.value(plan.condition)
        body = fast = _nest(ctx, loop, var, plan, guarded=False)
        if condition is not None:
            with at_the_edge():
                try:
                    with ctx.attempt():
                        slow = _nest(ctx, loop, var, plan, guarded=True)
                except NotVectorisable:
                    slow = ctx.lower_stmt(nested_loops(loop))
            body = IfThenElse(condition, fast, slow)
    return seq(statements, body)


def _nest(ctx: Context, loop: Parallel, var: Var, plan: Whole, *, guarded: bool) -> TirStmt:
    """Return loops over the other indices around the loop of vectors."""
    trusted, ahead = ctx.trusted, ctx.ahead
    for hint in nodes_of(loop.body, Hint):
        if hint.name == PREFETCH_NEXT_ITERATION and ctx.iteration is not None:
            ctx.ahead = ctx.iteration, int(hint.values[0])
    if not guarded:
        ctx.trusted = trusted | plan.accesses
    try:
        pairs = list(zip(loop.vars, loop.extents, strict=True))
        outer = [(v, e) for v, e in pairs if v is not var]
        extent = next(e for v, e in pairs if v is var)
        streams = any(n.buffer in ctx.streamed for n in nodes_of(loop.body, Store))
        ctx.only_reads = any(h.name == READ_IN_ORDER for h in nodes_of(loop.body, Hint))
        if ctx.only_reads or (streams and contains(loop.body, Call)):
            ctx.stretch = static_value(extent) or 0
        return _outer(ctx, loop, outer, var, extent, guarded)
    finally:
        ctx.trusted, ctx.ahead, ctx.stretch, ctx.only_reads = trusted, ahead, 0, False


def _outer(
    ctx: Context, loop: Parallel, outer: list[Any], var: Var, extent: Expr, guarded: bool
) -> TirStmt:
    sums = None
    if updates_of(loop):
        sums = RowSums(ctx, loop, lanes_for(ctx, loop.body, static_value(extent)), _one_vector)
    if not outer:
        if sums is not None:
            return sums.row_group([{}])
        with ctx.statement() as statements:
            before, ctx.hoisted = ctx.hoisted, hoisted(ctx, loop.body, var)
            inner = vector_loop(ctx, loop.body, var, extent, masked=guarded)
            ctx.hoisted = before
        return seq(statements, inner)
    (index, stop), *rest = outer
    if sums is not None and not rest:
        return sums.rows(index, stop)
    named = TirVar(index.name, prim(str(index.dtype)))
    with ctx.statement() as statements:
        ctx.vars[index] = named
        body = _outer(ctx, loop, rest, var, extent, guarded)
        limit = ctx.index(stop, str(index.dtype))
    start = number(0, str(index.dtype))
    return seq(statements, TirFor(named, start, limit, ForKind.SERIAL, body))


def vector_loop(
    ctx: Context, body: Stmt, var: Var, extent: Expr, *, masked: bool = False
) -> TirStmt:
    """Return ``for var in range(extent): body`` with `var` in the lanes of vectors.

    Whole vectors run first, then one masked vector for the rest; if `masked`, all are.
    """
    fixed = static_value(extent)
    lanes = lanes_for(ctx, body, fixed)
    kind = str(var.dtype)
    step = number(lanes, kind)
    if fixed is not None:
        whole, rest = divmod(fixed, lanes)
        parts = []
        if masked:
            whole, rest = whole + (rest > 0), 0
            count = (lambda base: number(fixed, kind) - base) if fixed % lanes else None
            return _counted_vectors(ctx, body, var, lanes, number(whole, kind), count)
        for run, env in stretches(ctx.env, body, var, lanes, whole):
            if run:
                count, first = number(len(run), kind), number(run.start, kind)
                with ctx.scope(env):
                    parts.append(_counted_vectors(ctx, body, var, lanes, count, None, first))
        if rest:
            base = number(whole * lanes, kind)
            parts.append(_one_vector(ctx, body, Lane(var, base, lanes, i32(rest))))
        return seq(parts)
    with ctx.statement() as statements:
        total = ctx.keep_index(ctx.index(extent, kind))
        if masked:
            whole = tirx.floordiv(total + number(lanes - 1, kind), step)
            loop = _counted_vectors(ctx, body, var, lanes, whole, lambda base: total - base)
            return seq(statements, loop)
        whole = ctx.keep_index(tirx.floordiv(total, step))
        main = _counted_vectors(ctx, body, var, lanes, whole, None)
        base = ctx.keep_index(whole * step)
        left = ctx.keep_index(total - base)
        lane = Lane(var, base, lanes, tirx.Cast(prim("int32"), left))
        tail = _one_vector(ctx, body, lane)
    return seq(statements, main, IfThenElse(left > number(0, kind), tail, None))


def _counted_vectors(
    ctx: Context, body: Stmt, var: Var, lanes: int, count: PrimExpr, left: Any, first: Any = 0
) -> TirStmt:
    """Return a loop over `count` vectors; ``left(base)`` tells how many lanes remain."""
    kind = str(var.dtype)
    vector, is_one = TirVar("v", prim(kind)), isinstance(count, IntImm) and count.value == 1
    base = (first if is_one else first + vector) * number(lanes, kind)
    lane = Lane(var, base, lanes, None if left is None else _as_count(left(base)))
    inner = _one_vector(ctx, body, lane)
    return inner if is_one else TirFor(vector, number(0, kind), count, ForKind.SERIAL, inner)


def _as_count(value: PrimExpr) -> PrimExpr:
    return value if scalar_name(value) == "int32" else tirx.Cast(prim("int32"), value)


def _one_vector(ctx: Context, body: Stmt, lane: Lane) -> TirStmt:
    outer_lane, outer_vectors, outer_cells = ctx.lane, ctx.vectors, ctx.lane_cells
    ctx.lane, ctx.lane_cells = lane, dict(outer_cells)
    try:
        with ctx.scope():
            return _vector_stmt(ctx, body)
    finally:
        ctx.lane, ctx.vectors, ctx.lane_cells = outer_lane, outer_vectors, outer_cells


def _vector_stmt(ctx: Context, stmt: Stmt) -> TirStmt:
    match stmt:
        case Seq(body=body):
            with ctx.scope():
                return seq([_vector_stmt(ctx, s) for s in body])
        case Let(var=var, value=value):
            return _let(ctx, var, value)
        case AnnotateSafeValue(buffer=buffer, value=value):
            ctx.safe[buffer] = value
            return seq()
        case Hint():
            return seq()
        case ReducerUpdate():
            return seq(vector_update(ctx, stmt))
        case Alloc(buffer=buffer):
            return _private_memory(ctx, buffer)
        case Store():
            with ctx.statement() as statements:
                last = vector_store(ctx, stmt)
            return seq(statements, last)
        case If(cond=cond) if not varies(ctx, cond):
            with ctx.statement() as statements:
                test = ctx.value(cond)
                then = _vector_stmt(ctx, stmt.then)
                otherwise = None
                if stmt.otherwise is not None:
                    otherwise = _vector_stmt(ctx, stmt.otherwise)
            return seq(statements, IfThenElse(test, then, otherwise))
        case For() if not any(varies(ctx, e) for e in (stmt.start, stmt.stop, stmt.step)):
            return _inner_loop(ctx, stmt)
    raise NotVectorisable(f"{type(stmt).__name__} differs between lanes")


def _private_memory(ctx: Context, buffer: Buffer) -> TirStmt:
    """Return the allocation of one vector per element of a buffer that every lane has."""
    assert ctx.lane is not None
    count = math.prod(buffer.static_shape or ())
    dtype = with_lanes(memory_type(buffer.dtype), ctx.lane.lanes)
    cell = scratch([count], dtype, buffer.name)
    ctx.lane_cells[buffer] = cell
    return allocate(cell, on_stack=True)


def _inner_loop(ctx: Context, stmt: For) -> TirStmt:
    if static_value(stmt.step) != 1:
        raise NotVectorisable("an inner loop counts in steps")
    with ctx.statement() as statements:
        kind = str(stmt.var.dtype)
        start, stop = ctx.index(stmt.start, kind), ctx.index(stmt.stop, kind)
        loop = counted(ctx, stmt, start, stop, lambda: _vector_stmt(ctx, stmt.body))
    return seq(statements, loop)


def _let(ctx: Context, var: Var, value: Expr) -> TirStmt:
    with ctx.statement() as statements:
        computed = ctx.value(value)
        if lanes_of(computed) > 1:
            ctx.vectors = ctx.vectors | {var}
            if var.dtype.is_int and not contains(value, Load, Call):
                with first_lane(ctx):  # where neighbouring elements begin, if it is an index
                    ctx.first_values[var] = ctx.keep(ctx.value(value), var.name)
        is_bool = scalar_name(computed) == "bool"
        ctx.vars[var] = computed if is_bool else ctx.keep(computed, var.name)
    learn(ctx, var, value)
    return seq(statements)
