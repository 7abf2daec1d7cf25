"""What operators do to clocks, and the bars that they leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from tile_api.report.timeline.simulation_state import Actor, LaneKey, Meeting, PhaseBarrier, Stage
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.expr import AddressOf, Call, Expr, Extent, Load
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import Evaluate, Leaf, Stmt
from tile_core.ops.async_copy import CopyArrive, CopyCommit, CopyWait
from tile_core.ops.bulk_copy import BulkCopy, BulkWait
from tile_core.ops.control import Barrier
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait

ISSUE, TRANSFER, PRODUCT, WORK = 0.2, 1.5, 1.0, 0.25
"""Units of time: beginning a copy, the copy, a product, and anything else."""

Condition: TypeAlias = "Callable[[], float | None]"
"""When what is waited for is done; None if nobody knows yet."""

Waits: TypeAlias = "Iterator[Condition]"


def act(stmt: Stmt, actor: Actor, stage: Stage) -> Waits:
    """Run a statement that is no loop and no branch; yield what has to be waited for."""
    match stmt:
        case BarrierInit(barriers=barriers, counts=counts):
            stage.counts[barriers.storage] = counts
        case BarrierArrive():
            count = 1 if stmt.nbytes else -(-actor.threads // stage.warp_size)
            _barrier(stmt.barrier, actor, stage).arrive(actor.time, count, stmt.nbytes)
        case CopyArrive():
            ends = max(actor.time, actor.begun)
            _barrier(stmt.barrier, actor, stage).arrive(ends, actor.threads, 0)
        case BarrierWait(parity=parity):
            yield from _wait_for_phase(_barrier(stmt.barrier, actor, stage), parity, stmt, actor,
                                       stage)  # fmt: skip
        case Barrier():
            yield from _meet(stmt, actor, stage)
        case CopyCommit():
            actor.groups.append(actor.begun)
            actor.begun = 0.0
        case CopyWait(pending=pending):
            yield from _until(actor.groups, pending, stmt, actor, stage)
        case BulkWait(pending=pending):
            yield from _until(actor.stores, pending, stmt, actor, stage)
        case WaitProducts(pending=pending):
            yield from _until(actor.products, pending, stmt, actor, stage)
        case Copy() if stmt.is_async and stmt.dst.buffer.scope is Scope.SHARED:
            _begin_copy(stmt, stmt.dst, actor, stage)
        case BulkCopy():
            _begin_bulk_copy(stmt, actor, stage)
        case Copy() if _is_load(stmt):
            _begin_copy(stmt, stmt.dst, actor, stage)
            actor.loads[stmt.dst.buffer.storage] = actor.begun
        case Gemm():
            _multiply(stmt, actor, stage)
        case Evaluate(value=Call() as call):
            yield from _call(call, stmt, actor, stage)
        case _:
            _work(stmt, actor, stage)


def is_event(node: Node) -> bool:
    """Whether a statement is more than work that threads do by themselves."""
    if isinstance(node, Copy):
        return node.is_async or _is_load(node)
    if isinstance(node, Evaluate):
        return isinstance(node.value, Call) and node.value.function in _CALLS
    return isinstance(node, _EVENTS)


_EVENTS = (BarrierArrive, BarrierWait, Barrier, CopyArrive, CopyCommit, CopyWait, BulkWait,
           WaitProducts, BulkCopy, Gemm)  # fmt: skip
_CALLS = frozenset({"mbarrier_wait_parity", "mbarrier_arrive", "tma_store_arrive",
                    "tma_store_wait", "mbarrier_expect_tx"})  # fmt: skip


def _is_load(op: Copy) -> bool:
    """Whether threads load into registers, and go on until they need what they loaded."""
    return op.src.buffer.scope.is_global and op.dst.buffer.scope is Scope.FRAGMENT


# Copies ------------------------------------------------------------------------------------


def _begin_copy(op: Stmt, dst: Region, actor: Actor, stage: Stage) -> float:
    """Draw the beginning of a copy and the copy itself; return when it ends."""
    number, text = _iteration(op, dst, actor, stage), _text(op)
    start = actor.time
    actor.time += ISSUE
    end = start + ISSUE + TRANSFER
    stage.draw(actor.lane, "issue", (start, actor.time), number, op, text)
    stage.filled.add(dst.buffer.storage)
    is_one = bool(dst.extents) and static_value(dst.extents[0]) == 1
    lane = _tile(dst.buffer, dst.starts if is_one else (), actor)
    stage.draw(lane, "transfer", (start, end), number, op, text)
    actor.begun = max(actor.begun, end)
    return end


def _begin_bulk_copy(op: BulkCopy, actor: Actor, stage: Stage) -> None:
    if not op.is_load:
        number = _iteration(op, op.dst, actor, stage)
        times = (actor.time, actor.time + ISSUE)
        stage.draw(actor.lane, "issue", times, number, op, _text(op))
        _use(op, (times[0], times[0] + TRANSFER), number, actor, stage)
        actor.stores.append(times[0] + TRANSFER)
        actor.time = times[1]
        return
    end = _begin_copy(op, op.dst, actor, stage)
    if op.barrier is not None:
        extents = op.dst.static_extents or (0,)
        nbytes = math.prod(extents) * op.dst.buffer.dtype.bits // 8
        _barrier(op.barrier, actor, stage).land(end, nbytes, expects=op.expects)


def _until(ends: list[float], pending: int, op: Stmt, actor: Actor, stage: Stage) -> Waits:
    """Wait until all but the last `pending` of what was begun has ended."""
    over = ends[: len(ends) - pending]
    _pass_time(max(over, default=0.0), op, actor, stage)
    del ends[: len(over)]
    yield from ()


# Barriers ----------------------------------------------------------------------------------


def _barrier(region: Region, actor: Actor, stage: Stage) -> PhaseBarrier:
    return stage.barrier(region.buffer, actor.values.number(region.starts[0]) or 0)


def _wait_for_phase(
    barrier: PhaseBarrier, parity: Expr, op: Stmt, actor: Actor, stage: Stage
) -> Waits:
    number = actor.values.number(parity)
    if number is None:
        stage.notes["A wait depends on data; it is taken to be over at once."] = None
        return
    yield partial(barrier.passed, number % 2)
    _pass_time(barrier.passed(number % 2) or 0.0, op, actor, stage)


def _meet(op: Barrier, actor: Actor, stage: Stage) -> Waits:
    """Meet other threads at a barrier with a number; others are of this role alone."""
    number = None if op.number is None else actor.values.number(op.number)
    needed = None if op.count is None else actor.values.number(op.count)
    if number is None or needed is None:
        return
    meeting = stage.meetings.setdefault(number, Meeting())
    taken = meeting.arrive(actor.time, actor.threads, needed)
    if not op.arrives_only:
        yield partial(meeting.over, taken)
        _pass_time(meeting.over(taken) or 0.0, op, actor, stage)


def _call(call: Call, op: Stmt, actor: Actor, stage: Stage) -> Waits:
    """Run one of the functions with which programs for Hopper are written by hand."""
    place = next((arg for arg in call.args if isinstance(arg, AddressOf)), None)
    if call.function == "tma_store_wait":
        yield from _until(actor.stores, 0, op, actor, stage)
    elif place is not None and place.buffer.scope is Scope.BARRIER:
        index = actor.values.number(place.indices[0]) or 0
        barrier = stage.barrier(place.buffer, index)
        if call.function == "mbarrier_wait_parity":
            yield from _wait_for_phase(barrier, call.args[-1], op, actor, stage)
        elif call.function == "mbarrier_arrive":
            barrier.arrive(actor.time, actor.threads)
        elif call.function == "mbarrier_expect_tx":
            barrier.arrive(actor.time, 0, actor.values.number(call.args[-1]) or 0)


def _pass_time(until: float, op: Stmt, actor: Actor, stage: Stage) -> None:
    if until > actor.time:
        number = _iteration(op, None, actor, stage)
        stage.draw(actor.lane, "wait", (actor.time, until), number, op, _text(op))
        actor.time = until


# Products and other work -------------------------------------------------------------------


def _multiply(op: Gemm, actor: Actor, stage: Stage) -> None:
    _need_loads(op, actor, stage)
    number, text = _iteration(op, op.c, actor, stage), _text(op)
    stays = op.wg_wait < 0
    start = max(actor.time, *actor.products, 0.0)
    end = start + PRODUCT
    if stays:
        stage.draw(actor.lane, "issue", (actor.time, actor.time + ISSUE), number, op, text)
        actor.time += ISSUE
        actor.products.append(end)
    else:
        actor.time, actor.products = end, []
    stage.draw(actor.unit if stays else actor.lane, "product", (start, end), number, op, text)
    _use(op, (start, end), number, actor, stage)


def _work(op: Stmt, actor: Actor, stage: Stage) -> None:
    if not any(isinstance(node, Leaf) or _reads_tiles(node) for node in walk(op)):
        return
    _need_loads(op, actor, stage)
    number = _iteration(op, None, actor, stage)
    times = (actor.time, actor.time + WORK)
    stage.draw(actor.lane, "work", times, number, op, _text(op))
    _use(op, times, number, actor, stage)
    actor.time = times[1]


def _need_loads(op: Stmt, actor: Actor, stage: Stage) -> None:
    """Wait for what the statement reads and is still being loaded into registers."""
    if actor.loads:
        read = {buffer.storage for buffer, _ in _read(op)}
        for buffer in read & actor.loads.keys():
            _pass_time(actor.loads.pop(buffer), op, actor, stage)


def _reads_tiles(node: Node) -> bool:
    return isinstance(node, Load) and node.buffer.scope in (Scope.SHARED, Scope.FRAGMENT)


def _use(op: Stmt, times: tuple[float, float], number: int, actor: Actor, stage: Stage) -> None:
    """Draw that tiles which copies fill are read."""
    lanes = [_tile(b, starts, actor) for b, starts in _read(op) if b.storage in stage.filled]
    for lane in dict.fromkeys(lanes):
        stage.draw(lane, "use", times, number, op, _text(op))


def _read(op: Stmt) -> Iterator[tuple[Buffer, tuple[Extent, ...]]]:
    """Yield what a statement reads, and where."""
    for node in walk(op):
        if isinstance(node, Leaf):
            for region in node.reads():
                is_one = bool(region.extents) and static_value(region.extents[0]) == 1
                yield region.buffer, region.starts if is_one else ()
        elif isinstance(node, Load):
            yield node.buffer, node.indices


def _tile(buffer: Buffer, starts: Sequence[Extent], actor: Actor) -> LaneKey:
    """Return the lane of a tile, or of one of its versions: its first index is their number."""
    has_versions = buffer.rank > 2 and bool(starts)
    number = actor.values.number(starts[0]) if has_versions else None
    return ("tile", buffer.storage.name, -1 if number is None else number)


def _iteration(op: Stmt, region: Region | None, actor: Actor, stage: Stage) -> int:
    """Return how often these threads ran this statement of the user before."""
    where = None if op.span is None else (op.span.file, op.span.line, op.span.col)
    target = None if region is None else region.buffer.storage
    return stage.iteration_of((actor.first, type(op), where or id(op), target))


def _text(op: Stmt) -> str:
    """Return a statement's first line, without declarations of what it uses."""
    lines = (line.strip() for line in print_stmt(op).split("\n"))
    return next(line for line in lines if not line.startswith("view "))
