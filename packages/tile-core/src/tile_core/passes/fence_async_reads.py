"""Fences between what threads write to shared memory and engines that read it."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import AddressOf, Call
from tile_core.ir.gpu_intrinsics import ASYNC_COPY
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import Kernel, Launch, Leaf, Parallel, Seq, Stmt, Store, is_statement
from tile_core.ir.visitor import map_launches
from tile_core.ops.async_copy import CopyWait
from tile_core.ops.bulk_copy import BulkCopy, FenceAsync
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.passes.signals import awaits_signal


def fence_async_reads(kernel: Kernel, is_asynchronous: Callable[[Gemm], bool]) -> Kernel:
    """Return `kernel` with a fence behind each write that an engine may read.

    Before   copy C_l, C_s;  bulk_copy C_s, C
    After    copy C_l, C_s;  fence_async;  bulk_copy C_s, C

    The threads that wrote fence, before the barrier that tells of their writes (see
    `insert_barriers`, which comes later). What asynchronous copies of threads write is fenced
    where the program waits for it; copies by hand may be waited for at any
    barrier in memory. Where an MMA `is_asynchronous`, an engine reads its factors in shared
    memory itself.
    """

    def fenced(launch: Launch) -> Launch:
        read = _read_by_engines(launch, is_asynchronous)
        return _fenced(launch, read) if read else launch

    return map_launches(kernel, fenced)


def _read_by_engines(launch: Launch, is_asynchronous: Callable[[Gemm], bool]) -> set[Buffer]:
    found: set[Buffer] = set()
    for copy in nodes_of(launch.body, BulkCopy, RemoteCopy):
        if _is_read_by_engine(copy):
            found |= {region.buffer.storage for region in copy.reads()}
    for product in nodes_of(launch.body, Gemm):
        if is_asynchronous(product):
            found |= {r.buffer.storage for r in (product.a, product.b, *product.scales)}
    return {b for b in found if b.scope is Scope.SHARED}


def _is_read_by_engine(copy: BulkCopy | RemoteCopy) -> bool:
    """Whether an engine takes what is copied out of shared memory."""
    return not copy.is_load if isinstance(copy, BulkCopy) else copy.barrier is not None


def _fenced(launch: Launch, read: set[Buffer]) -> Launch:
    loops = nodes_of(launch.body, Parallel)
    inside = {n for p in loops for n in nodes_of(p.body, Leaf, Parallel, Store)}
    writers = [
        n
        for n in nodes_of(launch.body, Leaf, Parallel, Store)
        if n not in inside and _writes(n, read)
    ]
    by_hand = any(_copies_by_hand(n, read) for n in nodes_of(launch.body, Call))
    late = by_hand or any(map(_is_async, writers))
    waits: list[Stmt] = [*nodes_of(launch.body, CopyWait)] if late else []
    if by_hand:
        waits += [n for n in walk(launch.body) if is_statement(n) and awaits_signal(n)]
    done: dict[Node, Node] = {}
    for node in (*writers, *waits):
        if not _is_async(node):
            done[node] = Seq((node, FenceAsync(span=node.span)), span=node.span)
    return substitute(launch, done) if done else launch


def _copies_by_hand(call: Call, read: set[Buffer]) -> bool:
    if call.function != ASYNC_COPY:
        return False
    return any(isinstance(a, AddressOf) and a.buffer.storage in read for a in call.args)


def _is_async(stmt: Node) -> bool:
    return isinstance(stmt, (Copy, Parallel)) and stmt.is_async


def _writes(stmt: Stmt, storages: set[Buffer]) -> bool:
    if isinstance(stmt, BulkCopy) or (isinstance(stmt, RemoteCopy) and stmt.barrier is not None):
        return False
    return any(a.mode is not Mode.READ and a.buffer.storage in storages for a in accesses(stmt))
