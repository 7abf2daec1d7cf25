"""Tiles that an engine adds to tensors, where it can."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.stmt import Alloc, Kernel, Launch, Parallel, Seq, Stmt
from tile_core.ops.atomic import AtomicKind, AtomicTile
from tile_core.ops.bulk_copy import BulkCopy, BulkWait
from tile_core.ops.copy import Copy
from tile_core.passes.pipelines.analysis import facts_of
from tile_core.passes.ranges import Env
from tile_core.passes.specialise.bulk import why_not_bulk
from tile_core.passes.uniformity import is_thread_program
from tile_core.passes.use_bulk_stores import Machine

_ADDED = frozenset({"float16", "bfloat16", "float32", "int32", "uint32", "uint64"})
_COMPARED = frozenset({"float16", "bfloat16", "int32", "uint32", "int64", "uint64"})


def use_bulk_updates(kernel: Kernel, machine: Machine) -> Kernel:
    """Return `kernel` with atomic updates by shared tiles made in bulk.

    Before   atomic add C_s, C[by*128:+128, bx*128:+128]
    After    bulk_copy C_s, C[by*128:+128, bx*128:+128], reduce add;  bulk_wait

    An element is updated once and for all, whatever other blocks add at the same time. Tiles in
    registers take the way through shared memory where the program asks for the engine
    (``use_tma``). Updates that are ordered against other accesses, or that the engine cannot
    make, stay as they are. Source: PTX ISA, "cp.reduce.async.bulk.tensor".
    """
    if not machine.has("tma"):
        return kernel

    def rule(node: Node) -> Node:
        if not isinstance(node, Launch) or is_thread_program(node):
            return node
        inside = {n for p in walk(node.body) if isinstance(p, Parallel) for n in walk(p)}
        env = facts_of(kernel, node)
        done: dict[Node, Node] = {}
        for op in (n for n in walk(node.body) if isinstance(n, AtomicTile)):
            made = None if op in inside else _in_bulk(op, env)
            if made is not None:
                done[op] = made
        return substitute(node, done) if done else node

    return rewrite(kernel, rule)


def _in_bulk(op: AtomicTile, env: Env) -> Stmt | None:
    """Return the update as the engine makes it, None if it cannot."""
    known = _ADDED if op.kind is AtomicKind.ADD else _COMPARED
    if op.memory_order != "relaxed" or str(op.dst.buffer.dtype) not in known:
        return None
    before: tuple[Stmt, ...] = ()
    source = op.src
    if source.buffer.scope is Scope.FRAGMENT and op.use_tma and source.static_extents is not None:
        name = f"{source.buffer.name}_rows"
        tile = Buffer(name, source.static_extents, op.dst.buffer.dtype, Scope.SHARED, span=op.span)
        before = (Alloc(tile, span=op.span), Copy(source, whole(tile), span=op.span))
        source = whole(tile)
    if source.buffer.scope is not Scope.SHARED:
        return None
    if why_not_bulk(Copy(source, op.dst, span=op.span), env, {}) is not None:
        return None
    update = BulkCopy(source, op.dst, reduce=op.kind.value, span=op.span)
    wait = BulkWait(is_read_enough=False, span=op.span)
    return Seq((*before, update, wait), span=op.span)
