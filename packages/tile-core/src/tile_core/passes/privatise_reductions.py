"""Totals of loops: each thread combines its own elements, all threads meet after the loop."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.build_expr import as_expr, cast
from tile_core.ir.effects import accesses
from tile_core.ir.expr import Load, Var
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Alloc, Kernel, OnThreads, Parallel, Seq, Stmt
from tile_core.ir.visitor import LOOPS, Loop, map_statements
from tile_core.ops.loop_builders import accumulator, index_dtype, load, store
from tile_core.ops.reduce import Reduce, combine, magnitude
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.remarks import remark


def privatise_reductions(kernel: Kernel) -> Kernel:
    """Return `kernel` with what loops only add to in parts of which each thread has its own.

    Before   for k < 16: copy x[k], rows;  reduce sum rows, dim=1 -> total, clear=False
    After    reducer_init sum own
             for k < 16: copy x[k], rows;  parallel i, j: own[i] += rows[i, j]
             finalize_reducer sum own -> part;  parallel i: total[i] = total[i] + part[i]

    Threads meet once, and not in each iteration. Nothing else in the loop touches the total: nobody
    sees that it comes later, and the order of a reduction is free.
    """
    if all(op.clear for op in nodes_of(kernel, Reduce)):
        return kernel
    return map_statements(kernel, _private)


def _private(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, LOOPS):
        return map_statements(stmt, _private)
    before: list[Stmt] = []
    after: list[Stmt] = []
    updates: dict[Node, Node] = {}
    for op, *others in _totals(stmt):
        own = _parts(op)
        before += [Alloc(own, span=op.span), ReducerInit(own, op.kind, span=op.span)]
        updates |= {each: _update(each, own) for each in (op, *others)}
        after += _met(op, own)
        told = f"each thread has a part of {op.dst.buffer.name!r} until the loop ends"
        remark("passed", "privatise_reductions", told, op.span)
    if not updates:
        return map_statements(stmt, _private)
    inner = map_statements(substitute(stmt, updates), _private)
    return Seq((*before, inner, *after), span=stmt.span)


def _totals(loop: Loop) -> list[list[Reduce]]:
    """Return the reductions of a loop into tiles that nothing else in it touches, by tile."""
    found: dict[Buffer, list[Reduce]] = {}
    for op in nodes_of(loop.body, Reduce):
        if _adds(op):
            found.setdefault(op.dst.buffer, []).append(op)
    if not found or nodes_of(loop.body, OnThreads):
        return []
    made = {node.buffer for node in nodes_of(loop.body, Alloc)}
    ops = {op for each in found.values() for op in each}
    others = {a.buffer.storage for a in accesses(loop) if a.node not in ops}
    others |= {op.src.buffer.storage for op in ops}
    alike = (each for total, each in found.items() if total not in made | others)
    return [each for each in alike if len({(op.kind, op.nan_propagate) for op in each}) == 1]


def _adds(op: Reduce) -> bool:
    tile, total = op.src, op.dst
    is_spread = tile.buffer.scope is total.buffer.scope is Scope.FRAGMENT
    is_plain = total.is_whole and total.buffer.storage is total.buffer
    is_fixed = tile.static_extents is not None and total.static_extents is not None
    return not op.clear and is_spread and is_plain and is_fixed


def _parts(op: Reduce) -> Buffer:
    """Return what threads combine in: wide, whatever the total is rounded to."""
    total, extents = op.dst.buffer, op.src.extents
    shape = tuple(n for axis, n in enumerate(extents) if axis != op.dim) or (1,)
    dtype = accumulator("own", total.dtype).dtype
    return Buffer(f"{total.name}_own", shape, dtype, Scope.REDUCER, span=op.span)


def _points(rank: int) -> tuple[Var, ...]:
    return tuple(Var("ijklmnop"[axis % 8], index_dtype(())) for axis in range(rank))


def _update(op: Reduce, own: Buffer) -> Stmt:
    extents = op.src.extents
    at = _points(len(extents))
    kept = tuple(x for axis, x in enumerate(at) if axis != op.dim) or (as_expr(0),)
    value = cast(load(op.src, range(len(at)), at), op.dst.buffer.dtype)
    value = cast(value, own.dtype)
    if op.kind.takes_magnitudes:
        value = magnitude(value)
    update = ReducerUpdate(own, op.kind, kept, value, op.nan_propagate, span=op.span)
    return Parallel(at, tuple(map(as_expr, extents)), update, span=op.span)


def _met(op: Reduce, own: Buffer) -> list[Stmt]:
    """Return what combines the parts of all threads with the total."""
    part = Buffer(f"{op.dst.buffer.name}_part", own.shape, own.dtype, Scope.FRAGMENT, span=op.span)
    at = _points(own.rank)
    kept = [axis for axis in range(len(op.src.extents)) if axis != op.dim]
    axes = tuple(None if axis is None else kept.index(axis) for axis in op.dst_axes)
    old = cast(load(op.dst, axes, at), own.dtype)
    new = combine(op.kind, old, Load(part, at), nan_propagate=op.nan_propagate)
    finalize = ReducerFinalize(own, op.kind, whole(part), op.nan_propagate, span=op.span)
    extents = tuple(map(as_expr, own.shape))
    added = Parallel(at, extents, store(op.dst, axes, at, new), span=op.span)
    return [Alloc(part, span=op.span), finalize, added]
