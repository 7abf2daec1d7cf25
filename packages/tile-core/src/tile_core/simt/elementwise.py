"""Loops over tiles, and operators that are such loops, as statements of one thread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Call, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of, rewrite, walk
from tile_core.ir.stmt import Evaluate, If, Let, Parallel, Seq, Stmt, Store
from tile_core.ir.visitor import map_statements, own_level
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import as_parallel
from tile_core.passes.lower_serially import nested_loops
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do
from tile_core.simt.partition import partition, unrolled
from tile_core.simt.subbyte_access import is_packed
from tile_core.simt.vectorise import async_lanes, vectorise


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


def lower_paired(loop: Parallel, layout: LoopLayout | None, ctx: SimtContext) -> Stmt | None:
    """Return a loop that stores neighbours together, by way of memory if registers are read.

    Before   parallel i, j: packed[i, j] = tile[i, j]
    After    parallel i, j: space[i, j] = tile[i, j];  barrier
             parallel i, j: packed[i, j] = space[i, j];  barrier

    Before   parallel i, j: packed[j, i] = A[i, j]
    After    parallel j, i: packed[j, i] = A[i, j]

    None for loops that can stay as they are, and for those in which only the holder of a
    register knows whether or where something is stored, or a sequential loop stores it.
    """
    if layout is None or layout.vector > 1 or loop.is_async or math.prod(layout.extents) % 2:
        return None
    stores = tuple(_packed_stores(loop.body))
    if not stores:
        return None
    last = stores[0].indices[-1]
    if not any(n.scope.is_spread for n in nodes_of(loop.body, Buffer)):
        turns = not _mentions(last, loop.vars[-1])
        return _in_pairs(loop, last, layout.extents, ctx) if turns else None
    if not _is_apart(loop.body, stores):
        return None
    spaces: dict[Node, Stmt] = {}
    loads: dict[Node, Stmt] = {}
    for store in stores:
        dtype = str(store.buffer.dtype)
        tile = ctx.scratch_tile("bytes", tuple(layout.extents), dtype)
        spaces[store] = Store(tile, loop.vars, store.value, span=store.span)
        loads[store] = replace(store, value=Load(tile, loop.vars))
    there = rewrite(loop.body, lambda node: spaces.get(node, node))
    back = _only(loop.body, loads)
    sync = do("sync", span=loop.span)
    return Seq(
        (
            partition(replace(loop, body=there), layout, ctx),
            sync,
            _in_pairs(replace(loop, body=back), last, layout.extents, ctx),
            sync,
        )
    )


def _in_pairs(loop: Parallel, last: Expr, box: tuple[int, ...], ctx: SimtContext) -> Stmt:
    """Deal out pairs of iterations that are neighbours along what `last` moves with."""
    order = sorted(range(len(box)), key=lambda n: _mentions(last, loop.vars[n]))
    turned = replace(
        loop,
        vars=tuple(loop.vars[n] for n in order),
        extents=tuple(loop.extents[n] for n in order),
        loop_layout=None,
    )
    return partition(turned, planned([box[n] for n in order], ctx.threads, 2, least=2), ctx)


def _packed_stores(stmt: Stmt) -> Iterator[Store]:
    """Yield the stores of 4-bit elements to tensors, except those in sequential loops."""
    return (s for s in own_level(stmt) if isinstance(s, Store) and is_packed(s.buffer))


def _only(stmt: Stmt, wanted: Mapping[Node, Stmt]) -> Stmt:
    """Return `wanted` in place of its keys, under the names and conditions that they need."""
    match stmt:
        case Seq(body=body):
            kept: list[Stmt] = []
            for item in reversed(body):
                if isinstance(item, Let):
                    needed = any(_mentions(other, item.var) for other in kept)
                    kept[:0] = [item] if needed else []
                elif any(node in wanted for node in walk(item)):
                    kept.insert(0, _only(item, wanted))
            return replace(stmt, body=tuple(kept))
        case If():
            return map_statements(stmt, lambda side: _only(side, wanted))
    return wanted.get(stmt, Seq(()))


def _is_apart(body: Stmt, stores: tuple[Store, ...]) -> bool:
    """Whether any thread can store later what others computed in the other statements."""
    nodes = tuple(walk(body))
    written = {n.buffer.storage for n in nodes if isinstance(n, Store)}
    if sum(isinstance(n, Store) and is_packed(n.buffer) for n in nodes) > len(stores):
        return False
    packed = {s.buffer.storage for s in stores}
    if any(isinstance(n, Load) and n.buffer.storage in packed for n in nodes):
        return False
    places: dict[Node, Stmt] = {s: replace(s, value=s.indices[-1]) for s in stores}
    for node in walk(_only(body, places)):
        if isinstance(node, (Call, Evaluate)):
            return False
        if isinstance(node, Load):
            scope = node.buffer.scope
            if scope.is_spread or scope.is_thread_private or node.buffer.storage in written:
                return False
    return not any(isinstance(n, Evaluate) for n in nodes)


def _mentions(root: Node, var: Var) -> bool:
    return any(node is var for node in walk(root))
