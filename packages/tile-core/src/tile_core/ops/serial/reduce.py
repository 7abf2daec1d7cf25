"""Reductions, scans and reducers as scalar loops."""

from __future__ import annotations

import math

from tile_core.ir.arith import as_expr, binary, call, cast, const, maximum, minimum, select
from tile_core.ir.buffer import Buffer, whole
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.stmt import Alloc, Stmt, Store
from tile_core.ops.reduce import (
    Reduce,
    ReduceKind,
    ReducerFinalize,
    ReducerInit,
    ReducerUpdate,
    Scan,
)
from tile_core.ops.serial.loops import accumulator, count, load, nest, read, seq, store, write

_OPS = {
    ReduceKind.SUM: BinaryOp.ADD,
    ReduceKind.ABSSUM: BinaryOp.ADD,
    ReduceKind.BITAND: BinaryOp.BITAND,
    ReduceKind.BITOR: BinaryOp.BITOR,
    ReduceKind.BITXOR: BinaryOp.BITXOR,
}


def combine(kind: ReduceKind, a: Expr, b: Expr, *, nan_propagate: bool = False) -> Expr:
    """Return `a` and `b`, of one dtype, combined by `kind`; magnitudes are taken by callers."""
    if kind in _OPS:
        return cast(binary(_OPS[kind], a, b), a.dtype)
    better = minimum(a, b) if kind is ReduceKind.MIN else maximum(a, b)
    if not (nan_propagate and a.dtype.is_float):
        return better
    spoiled = binary(BinaryOp.OR, call("isnan", a), call("isnan", b))
    return select(spoiled, const(math.nan, a.dtype), better)


def magnitude(value: Expr) -> Expr:
    """Return the absolute value; truth values are their own."""
    return value if value.dtype.is_bool else call("abs", value)


def expand_reduce(op: Reduce) -> Stmt:
    """Return loops over the kept dimensions with one accumulator each."""
    kept = [n for axis, n in enumerate(op.src.extents) if axis != op.dim]
    return nest(kept, lambda at: expand_reduce_at(op, at))


def expand_reduce_at(op: Reduce, at: tuple[Var, ...]) -> Stmt:
    """Return the reduction of the one row at `at`, with an accumulator of its own.

    `at` has one index per kept dimension; a reduction to a single element ignores it.
    """
    rank = len(op.src.extents)
    kept = [k for k in range(rank) if k != op.dim]
    dst_axes = tuple(None if d is None else kept.index(d) for d in op.dst_axes)
    r = Var("r", at[0].dtype if at else const(0).dtype)
    src_axes = tuple(len(kept) if d == op.dim else kept.index(d) for d in range(rank))
    total = accumulator("total", op.dst.buffer.dtype)
    value = cast(load(op.src, src_axes, (*at[: len(kept)], r)), op.dst.buffer.dtype)
    value = cast(value, total.dtype)
    if op.kind.takes_magnitudes:
        value = magnitude(value)
    result: Expr = read(total)
    if not op.clear:
        old = cast(load(op.dst, dst_axes, at), total.dtype)
        result = combine(op.kind, result, old, nan_propagate=op.nan_propagate)
    step = combine(op.kind, read(total), value, nan_propagate=op.nan_propagate)
    return seq(
        Alloc(total),
        write(total, const(op.kind.identity(op.dst.buffer.dtype), total.dtype)),
        count(r, op.src.extents[op.dim], write(total, step)),
        store(op.dst, dst_axes, at, result),
    )


def expand_scan(op: Scan) -> Stmt:
    """Return loops over the other dimensions around a running total."""
    rank = len(op.src.extents)
    kept = [k for k in range(rank) if k != op.dim]
    extent = op.src.extents[op.dim]

    def body(at: tuple[Var, ...]) -> Stmt:
        r = Var("r", at[0].dtype if at else const(0).dtype)
        where = as_expr(extent, r.dtype) - 1 - r if op.reverse else r
        axes = tuple(len(kept) if d == op.dim else kept.index(d) for d in range(rank))
        total = accumulator("total", op.dst.buffer.dtype)
        value = cast(load(op.src, axes, (*at, where)), op.dst.buffer.dtype)
        step = combine(op.kind, read(total), cast(value, total.dtype))
        return seq(
            Alloc(total),
            write(total, const(op.kind.identity(op.dst.buffer.dtype), total.dtype)),
            count(
                r,
                extent,
                seq(write(total, step), store(op.dst, axes, (*at, where), read(total))),
            ),
        )

    return nest([op.src.extents[k] for k in kept], body)


def expand_reducer_init(op: ReducerInit) -> Stmt:
    """Return loops that set the accumulator to its start value, else to the identity."""
    dtype = op.reducer.dtype
    value = const(op.kind.identity(dtype), dtype) if op.init is None else cast(op.init, dtype)
    return nest(op.reducer.shape, lambda at: Store(op.reducer, at, value))


def expand_reducer_update(op: ReducerUpdate) -> Store:
    """Return the combination of one value into one element."""
    wide = accumulator("wide", op.reducer.dtype).dtype
    old = cast(Load(op.reducer, op.indices), wide)
    new = combine(op.kind, old, cast(op.value, wide))
    return Store(op.reducer, op.indices, cast(new, op.reducer.dtype))


def expand_reducer_finalize(op: ReducerFinalize) -> Stmt:
    """Return the copy of the accumulator to the destination; nothing if it is in place."""
    if _in_place(op.reducer, op.dst.buffer):
        return seq()
    source = whole(op.reducer)
    axes = tuple(range(op.reducer.rank))
    return nest(op.reducer.shape, lambda at: store(op.dst, axes, at, load(source, axes, at)))


def _in_place(a: Buffer, b: Buffer) -> bool:
    return a is b
