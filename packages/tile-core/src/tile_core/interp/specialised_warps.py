"""What ranges of threads do that go different ways: barriers in memory, engines, clusters.

Copies by engines are made at once and complete their bytes; products are complete when they
are left. So fences, commits and the waits for them have no effect here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tile_core.errors import BarrierMisuse, OutOfBounds
from tile_core.interp import regions
from tile_core.interp.execution_state import BlockState, Lanes
from tile_core.interp.expressions import evaluate
from tile_core.interp.mbarriers import Signal
from tile_core.interp.values import Array
from tile_core.interp.wait_events import Event, Pending
from tile_core.ir import gpu_intrinsics
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import AddressOf, Call, Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import Evaluate, Leaf
from tile_core.ops.async_copy import CopyArrive
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.control import ClusterSync, PingPongOrder
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait, SetRegisters
from tile_core.ops.remote_copy import RemoteCopy

WARP = 32


def call_steps(stmt: Evaluate, call: Call, lanes: Lanes) -> Iterator[Event]:
    """Do what one of `RANGE_INTRINSICS` says, for every active thread."""
    match call.function:
        case "mbarrier_arrive" | gpu_intrinsics.COPY_ARRIVAL:
            rank = call.args[1] if len(call.args) > 1 else None
            for signal, threads in _signals(call.args[0], lanes, rank):
                signal.arrive(threads)
            _told(lanes)
        case "mbarrier_expect_tx" | "mbarrier_arrive_expect_tx":
            _expect(call, lanes)
        case "mbarrier_wait_parity":
            yield from _wait(stmt, call.args[0], call.args[1], lanes)
        case "cluster_arrive" | "cluster_arrive_relaxed":
            _cluster_arrive(lanes)
        case "cluster_wait":
            yield from _cluster_wait(stmt, lanes)
        case "cluster_sync":
            _cluster_arrive(lanes)
            yield from _cluster_wait(stmt, lanes)


def operator_steps(op: Leaf, lanes: Lanes) -> Iterator[Event]:
    """Do what an operator of `OF_THREADS` says, for the threads that these lanes stand for."""
    match op:
        case ClusterSync():
            _cluster_arrive(lanes)
            yield from _cluster_wait(op, lanes)
        case BarrierArrive():
            _arrive_by_warps(op, lanes)
        case CopyArrive():
            _copies_arrive(op, lanes)
        case BarrierWait():
            (start,) = op.barrier.starts
            place = AddressOf(op.barrier.buffer, (as_expr(start),), "rw", span=op.span)
            yield from _wait(op, place, op.parity, lanes)


OF_THREADS: tuple[type[Leaf], ...] = (BarrierArrive, BarrierWait, ClusterSync, CopyArrive)
"""Operators in which threads arrive or wait one by one."""


# Barriers ------------------------------------------------------------------------------------


def barrier_init(op: BarrierInit, lanes: Lanes) -> None:
    """Make barriers ready."""
    block = _block(lanes)
    for number, count in enumerate(op.counts):
        name = op.barriers.name if len(op.counts) == 1 else f"{op.barriers.name}[{number}]"
        block.signals[op.barriers, number] = Signal(name, count)


def _told(lanes: Lanes) -> None:
    """Note that others may go on now."""
    lanes.machine.stores += 1
    block = _block(lanes)
    block.thread_epoch = lanes.machine.next_epoch()


def _signals(place: Expr, lanes: Lanes, rank: Expr | None = None) -> Iterator[tuple[Signal, int]]:
    """Yield each barrier that active threads mean, and how many threads mean it."""
    assert isinstance(place, AddressOf)
    index = np.broadcast_to(evaluate(place.indices[0], lanes), (lanes.count,))[lanes.active]
    ranks: Array = np.full(len(index), -1, np.int64)
    if rank is not None:
        ranks = np.broadcast_to(evaluate(rank, lanes), (lanes.count,))[lanes.active]
    for block, number in sorted({(int(r), int(i)) for r, i in zip(ranks, index, strict=True)}):
        home = _block(lanes) if block < 0 else peer(lanes, block, place)
        threads = int(((ranks == block) & (index == number)).sum()) * lanes.weight
        yield _signal(home, place.buffer, number, place, lanes), threads


def _signal(block: BlockState, buffer: Buffer, number: int, node: Node, lanes: Lanes) -> Signal:
    found = block.signals.get((buffer, number))
    if found is None:
        raise OutOfBounds(
            f"there is no barrier {number} in {buffer.name}[{', '.join(map(str, buffer.shape))}]",
            span=node.span or lanes.span,
            hint="give T.alloc_barrier a count of arrivals for each barrier",
        )
    return found


def _expect(call: Call, lanes: Lanes) -> None:
    nbytes = np.broadcast_to(evaluate(call.args[1], lanes), (lanes.count,))[lanes.active]
    for signal, threads in _signals(call.args[0], lanes):
        signal.expect(int(nbytes[0]) * threads)
        if call.function == "mbarrier_arrive_expect_tx":
            signal.arrive(threads)
    _told(lanes)


def _wait(node: Leaf | Evaluate, place: Expr, parity: Expr, lanes: Lanes) -> Iterator[Event]:
    wanted = int(lanes.agreed(evaluate(parity, lanes), "the parity of a phase", node.span)) & 1
    waited = [signal for signal, _ in _signals(place, lanes)]

    def is_over() -> bool:
        return all(signal.has_completed(wanted) for signal in waited)

    def lacks() -> str:
        return next(s.lacks() for s in waited if not s.has_completed(wanted))

    if not is_over():
        yield Pending(node, lanes, is_over, lacks)


def _arrive_by_warps(op: BarrierArrive, lanes: Lanes) -> None:
    warps = -(-int(lanes.active.sum()) * lanes.weight // WARP)
    ranks = [int(evaluate(rank, lanes)[0]) for rank in op.ranks]
    homes = [peer(lanes, rank, op) for rank in ranks] or [_block(lanes)]
    signals = [_barrier(op.barrier, home, op, lanes) for home in homes]
    if not op.nbytes:
        for signal in signals:
            signal.arrive(warps)
    elif lanes.team is None or lanes.first == lanes.team[0]:
        signals[0].expect(op.nbytes)
        signals[0].arrive()
    _told(lanes)


def _copies_arrive(op: CopyArrive, lanes: Lanes) -> None:
    """Let the copies begun so far end, and arrive at once: no order of events forbids it."""
    _block(lanes).flight.land()
    threads = int(lanes.active.sum()) * lanes.weight
    _barrier(op.barrier, _block(lanes), op, lanes).arrive(threads)
    _told(lanes)


# Clusters ------------------------------------------------------------------------------------


def peer(lanes: Lanes, rank: int, node: Node) -> BlockState:
    """Return the block of the cluster with this rank.

    Raises `BarrierMisuse` if there is none, or it has not begun.
    """
    cluster = _block(lanes).cluster
    size = 1 if cluster is None else cluster.size
    if not 0 <= rank < size:
        raise BarrierMisuse(
            f"there is no block {rank} in a cluster of {size}",
            span=node.span or lanes.span,
            hint=f"use ranks 0 to {size - 1}",
        )
    if cluster is None:
        return _block(lanes)
    found = cluster.blocks.get(rank)
    if found is None:
        raise BarrierMisuse(
            f"block {rank} of the cluster is reached before it has begun",
            span=node.span or lanes.span,
            hint="wait for all blocks of the cluster first: T.cluster_sync()",
        )
    return found


def _cluster_arrive(lanes: Lanes) -> None:
    cluster = _block(lanes).cluster
    if cluster is not None:
        times = int(lanes.active.sum()) * lanes.weight
        lanes.cluster_phase = cluster.arrive(times, lanes.machine.next_epoch)
        lanes.machine.stores += 1


def _cluster_wait(node: Leaf | Evaluate, lanes: Lanes) -> Iterator[Event]:
    cluster, mine = _block(lanes).cluster, lanes.cluster_phase
    if cluster is None:
        return

    def is_over() -> bool:
        return cluster.phase > mine

    def lacks() -> str:
        return f"{cluster.arrived} of {cluster.size * cluster.threads} threads of the cluster came"

    if not is_over():
        yield Pending(node, lanes, is_over, lacks)


# Copies --------------------------------------------------------------------------------------


def bulk_copy(op: BulkCopy, lanes: Lanes) -> None:
    """Copy at once; tell the barrier of bytes that were expected, and came."""
    block = _block(lanes)
    homes = [block]
    if op.multicast is not None:
        mask = int(evaluate(op.multicast, lanes)[0])
        named = [k for k in range(mask.bit_length()) if mask >> k & 1]
        if op.expects and block.rank in named[1:]:
            _expect_bytes(op, lanes)
            return
        if not op.expects or block.rank in named:
            homes = [peer(lanes, rank, op) for rank in named]
    if op.expects:
        _expect_bytes(op, lanes)
    nbytes = regions.moved(op.src, op.dst, lanes, op, homes if op.is_load else None, op.reduce)
    if op.barrier is not None:
        for home in homes:
            _barrier(op.barrier, home, op, lanes).expect(-nbytes)
    _told(lanes)


def _expect_bytes(op: BulkCopy, lanes: Lanes) -> None:
    assert op.barrier is not None
    extents = regions.numbers(op.tile.extents, lanes)
    nbytes = int(np.prod(extents)) * op.tile.buffer.dtype.bits // 8
    _barrier(op.barrier, _block(lanes), op, lanes).expect(nbytes)


def _barrier(barrier: Region, home: BlockState, op: Leaf, lanes: Lanes) -> Signal:
    (start,) = barrier.starts
    return _signal(home, barrier.buffer, regions.number(start, lanes), op, lanes)


def remote_copy(op: RemoteCopy, lanes: Lanes) -> None:
    """Copy at once into the tile of another block."""
    home = peer(lanes, int(evaluate(op.block, lanes)[0]), op)
    nbytes = regions.moved(op.src, op.dst, lanes, op, [home], None)
    if op.barrier is not None:
        _barrier(op.barrier, home, op, lanes).expect(-nbytes)
    _told(lanes)


def nothing(op: Leaf, lanes: Lanes) -> None:
    """Order what is in order already: products are complete at once, lanes stand for threads."""


def _block(lanes: Lanes) -> BlockState:
    assert lanes.block is not None
    return lanes.block


HANDLERS: dict[type[Leaf], Callable[[Any, Lanes], None]] = {
    BarrierInit: barrier_init,
    BulkCopy: bulk_copy,
    BulkWait: nothing,
    FenceAsync: nothing,
    PingPongOrder: nothing,
    RemoteCopy: remote_copy,
    SetRegisters: nothing,
}
"""By class: what the threads of a range do together."""
