"""What statements do to barriers and tiles, as events of the threads that run them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tile_core.ir import gpu_intrinsics
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.expr import AddressOf, Call
from tile_core.ir.stmt import Parallel, Stmt
from tile_core.ops.async_copy import CopyArrive, CopyCommit, CopyWait
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.control import GROUP, Barrier, ClusterSync, PingPongOrder, PingPongStep
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.testing.protocol.access_boxes import box_of, content_of, region_box
from tile_core.testing.protocol.events import (
    COPIES,
    PRODUCTS,
    STORES,
    Arrive,
    BarrierId,
    Box,
    Event,
    Fence,
    Fill,
    Init,
    Meet,
    Read,
    Settle,
    Wait,
    Write,
)
from tile_core.testing.protocol.trace import Group

WARP = 32
CLUSTER: BarrierId = ("the cluster's barrier", 0, 0)


def act(group: Group, stmt: Stmt) -> None:
    """Append the events of a statement without statements of barriers inside."""
    group.events += _of_operator(group, stmt)


def _of_operator(group: Group, stmt: Stmt) -> Iterator[Event]:
    span = stmt.span
    match stmt:
        case BarrierInit():
            if group.is_first:
                yield Init(group.facts.name(stmt.barriers), group.values.rank, span=span)
        case BarrierWait():
            parity = int(group.values.of(stmt.parity)) & 1
            yield Wait(_place(group, stmt.barrier), parity, span=span)
        case BarrierArrive():
            yield from _arrivals(group, stmt)
        case CopyArrive():
            place = _place(group, stmt.barrier)
            yield Arrive(place, len(group.active), copies=group.copies, span=span)
        case CopyCommit():
            group.groups.append(group.copies)
        case CopyWait(pending=pending):
            over = group.groups[: len(group.groups) - pending]
            yield Settle(COPIES, max(over, default=0), 0, span=span)
        case BulkCopy():
            if group.is_first:
                yield from _bulk_copy(group, stmt)
        case RemoteCopy():
            yield from _remote_copy(group, stmt)
        case BulkWait(pending=pending):
            group.stores += 1
            yield Settle(STORES, group.stores, pending, span=span)
        case FenceAsync():
            yield Fence(span=span)
        case ClusterSync():
            yield from _meet(group, CLUSTER, group.facts.size * group.facts.threads, stmt)
        case Barrier():
            yield from _barrier(group, stmt)
        case PingPongOrder():
            yield from _turn(group, stmt)
        case Gemm():
            yield from _product(group, stmt)
        case WaitProducts(pending=pending):
            yield from _settled(group, pending, stmt)
        case _:
            yield from _touches(group, stmt)
            for call in group.facts.calls(stmt):
                yield from _call(group, call)


# Barriers in memory --------------------------------------------------------------------------


def _place(group: Group, barrier: Region, rank: int | None = None) -> BarrierId:
    number = int(group.values.of(barrier.starts[0]))
    return group.facts.name(barrier.buffer), number, group.values.rank if rank is None else rank


def _arrivals(group: Group, stmt: BarrierArrive) -> Iterator[Event]:
    """Yield the arrival of each warp; or that of the first thread, if it announces bytes."""
    if stmt.nbytes:
        if group.is_first:
            yield Arrive(_place(group, stmt.barrier), 1, stmt.nbytes, span=stmt.span)
        return
    warps = -(-len(group.active) // WARP)
    ranks = [int(group.values.of(rank)) for rank in stmt.ranks]
    for rank in ranks or [group.values.rank]:
        yield Arrive(_place(group, stmt.barrier, rank), warps, span=stmt.span)


def _call(group: Group, call: Call) -> Iterator[Event]:
    """Yield what one of `RANGE_INTRINSICS` does, which every thread that runs it does."""
    threads, span = len(group.active), call.span
    match call.function:
        case "mbarrier_arrive" | gpu_intrinsics.COPY_ARRIVAL:
            yield Arrive(_addressed(group, call), threads, span=span)
        case "mbarrier_expect_tx" | "mbarrier_arrive_expect_tx":
            nbytes = int(group.values.of(call.args[1])) * threads
            count = 0 if call.function == "mbarrier_expect_tx" else threads
            yield Arrive(_addressed(group, call), count, nbytes, span=span)
        case "mbarrier_wait_parity":
            parity = int(group.values.of(call.args[1])) & 1
            yield Wait(_addressed(group, call), parity, span=span)
        case "fence_proxy_async":
            yield Fence(span=span)
        case gpu_intrinsics.STORE_COMMIT:
            group.stores += 1
        case gpu_intrinsics.STORE_WAIT:
            pending = int(group.values.of(call.args[0]))
            yield Settle(STORES, group.stores, pending, span=span)
        case "cluster_arrive" | "cluster_arrive_relaxed":
            group.arrivals[CLUSTER] = group.facts.size * group.facts.threads
            group.next_turn(CLUSTER)
            relaxed = call.function == "cluster_arrive_relaxed"
            yield Arrive(CLUSTER, threads, relaxed=relaxed, span=span)
        case "cluster_wait":
            yield Meet(CLUSTER, group.done.get(CLUSTER, 0) - 1, span=span)
        case "cluster_sync":
            yield from _meet(group, CLUSTER, group.facts.size * group.facts.threads, call)


def _addressed(group: Group, call: Call) -> BarrierId:
    address = call.args[0]
    assert isinstance(address, AddressOf)
    rank = group.values.rank
    if call.function == "mbarrier_arrive" and len(call.args) > 1:
        rank = int(group.values.of(call.args[1]))
    return group.facts.name(address.buffer), int(group.values.of(address.indices[0])), rank


# Barriers that threads meet at ---------------------------------------------------------------


def _meet(group: Group, place: BarrierId, threads: int, node: Any) -> Iterator[Event]:
    yield from _came(group, place, threads, node)
    yield Meet(place, group.done[place] - 1, span=node.span)


def _came(group: Group, place: BarrierId, threads: int, node: Any) -> Iterator[Event]:
    group.arrivals[place] = threads
    group.next_turn(place)
    yield Arrive(place, len(group.active), span=node.span)


def _barrier(group: Group, stmt: Barrier) -> Iterator[Event]:
    """Yield a barrier of the running threads, or one with a number of its own."""
    if stmt.scope == "warp":
        return
    rank, threads = group.values.rank, group.count
    last = group.first + threads - 1
    place: BarrierId = (f"the barrier of threads {group.first} to {last}", 0, rank)
    if stmt.number is not None:
        number = int(group.values.of(stmt.number))
        threads = threads if stmt.count is None else int(group.values.of(stmt.count))
        place = ("barrier", number, rank)
    if stmt.arrives_only:
        yield from _came(group, place, threads, stmt)
    else:
        yield from _meet(group, place, threads, stmt)


def _turn(group: Group, op: PingPongOrder) -> Iterator[Event]:
    """Yield a turn: each half has a barrier that the other half arrives at, and it meets."""
    half = (group.active[0] - group.first) // GROUP
    goes_on = op.goes_on is None or bool(group.values.of(op.goes_on))
    rank, both = group.values.rank, 2 * GROUP
    mine, other = ((f"turn of threads {group.first}", k, rank) for k in (half, 1 - half))
    if op.step is PingPongStep.TAKE:
        yield from _meet(group, mine, both, op)
    elif (op.step is PingPongStep.GIVE and (half == 0 or goes_on)) or (
        op.step is PingPongStep.OFFER and half == 1 and goes_on
    ):
        yield from _came(group, other, both, op)


# Engines -------------------------------------------------------------------------------------


def _bulk_copy(group: Group, op: BulkCopy) -> Iterator[Event]:
    """Yield the copies that the first of the running threads starts."""
    values, rank = group.values, group.values.rank
    (touch,) = group.facts.touched(op)
    box = box_of(touch, values, op)
    if not op.is_load:
        tile = (group.facts.name(touch.tile), rank)
        yield Read(tile, box, group.stores, True, STORES, span=op.span)
        return
    assert op.barrier is not None
    nbytes = _nbytes(box, touch.tile.dtype.bits)
    content = content_of(op, values, 0)
    if op.expects:
        yield Arrive(_place(group, op.barrier), 0, nbytes, span=op.span)
    for block in _receivers(group, op):
        there = _place(group, op.barrier, block & ~1 if op.tells_first else block)
        tile = (group.facts.name(touch.tile), block)
        yield Fill(tile, box, there, nbytes, content, span=op.span)


def _receivers(group: Group, op: BulkCopy) -> list[int]:
    """Return the blocks whose tiles this block fills: see `BulkCopy.multicast`."""
    rank = group.values.rank
    if op.multicast is None:
        return [rank]
    mask = int(group.values.of(op.multicast))
    named = [k for k in range(mask.bit_length()) if mask >> k & 1]
    if not op.expects:
        return named
    if rank not in named:
        return [rank]
    return named if rank == named[0] else []


def _remote_copy(group: Group, op: RemoteCopy) -> Iterator[Event]:
    values, rank = group.values, group.values.rank
    there = int(values.of(op.block))
    src, dst = (region_box(region, values) for region in (op.src, op.dst))
    source = (group.facts.name(op.src.buffer.storage), rank)
    target = (group.facts.name(op.dst.buffer.storage), there)
    content = content_of(op, values, group.next_turn(op))
    if op.barrier is None:
        yield Read(source, src, span=op.span)
        yield Write(target, dst, content, span=op.span)
    elif group.is_first:
        nbytes = _nbytes(dst, op.dst.buffer.dtype.bits)
        place = _place(group, op.barrier, there)
        yield Fill(target, dst, place, nbytes, content, (source, src), span=op.span)


def _nbytes(box: Box, bits: int) -> int:
    return bits * math.prod(last - first for first, last in box) // 8


# Tiles ---------------------------------------------------------------------------------------


def _product(group: Group, op: Gemm) -> Iterator[Event]:
    beside = group.facts.is_asynchronous(op)
    if op.is_first is None:
        yield from _touches(group, op, group.products if beside else None)
    elif group.values.of(op.is_first):
        yield from _pair(group, op)
    if beside:
        group.products += 1
        if op.wg_wait >= 0:
            yield from _settled(group, op.wg_wait, op)


def _pair(group: Group, op: Gemm) -> Iterator[Event]:
    """Yield what a product of a pair reads: one thread starts it, for tiles of both blocks.

    The other block has the second half of the second factor: not where the program's begins.
    """
    if not group.is_first:
        return
    for read in _touches(group, op, group.products):
        yield read
        if isinstance(read, Read):
            name, rank = read.tile
            halved = name == group.facts.name(op.b.buffer.storage)
            statement = None if halved else read.statement
            yield replace(read, tile=(name, rank ^ 1), statement=statement, span=read.span)


def _settled(group: Group, pending: int, stmt: Gemm | WaitProducts) -> Iterator[Event]:
    """Yield a wait for products.

    Those of a pair are over for the second block when the thread that started them has waited: an
    engine tells both, and no later.
    """
    yield Settle(PRODUCTS, group.products, pending, span=stmt.span)
    if not group.facts.pairs:
        return
    rank, over = group.values.rank, group.products - pending
    place: BarrierId = ("the products of the pair", 0, rank & ~1)
    group.arrivals[place] = 1
    if rank & 1:
        if over > 0:
            yield Meet(place, over - 1, span=stmt.span)
    elif group.is_first:
        for _ in range(group.done.get(place, 0), over):
            group.next_turn(place)
            yield Arrive(place, 1, span=stmt.span)


def _touches(group: Group, stmt: Stmt, lasts: int | None = None) -> Iterator[Event]:
    """Yield what a statement reads, then what it writes, of tiles in shared memory."""
    rank = group.values.rank
    found = [(t, box_of(t, group.values, stmt)) for t in group.facts.touched(stmt)]
    read = dict.fromkeys((t.tile, b, t.operand) for t, b in found if not t.writes)
    begun = None
    if isinstance(stmt, (Copy, Parallel)) and stmt.is_async:
        begun = group.copies
        group.copies += 1
    written = dict.fromkeys((t.tile, b) for t, b in found if t.writes)
    content = None
    if written:
        content = content_of(stmt, group.values, group.next_turn((stmt.span, "writes")))
    for tile, box, operand in read:
        key = (stmt.span, type(stmt).__name__, operand)
        yield Read(
            (group.facts.name(tile), rank), box, lasts, lasts is not None,
            statement=key, turn=group.next_turn(key), span=stmt.span,
            own=content if any(tile is other for other, _ in written) else None,
            team=(group.first, group.count),
        )  # fmt: skip
    for tile, box in written:
        assert tile.scope is Scope.SHARED
        assert content is not None
        team = group.first, group.count
        yield Write((group.facts.name(tile), rank), box, content, begun, team, span=stmt.span)
