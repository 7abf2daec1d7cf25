"""Programs of explicit threads: warps that run in step inside and take turns among them.

Each warp is a generator that pauses at barriers, at tile operations, which the whole block
runs together, and after each iteration of a `while` loop. Between two barriers every access to
memory that threads share is watched for races.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tile_core.analysis.uniformity import is_thread_program
from tile_core.errors import DataRace, Deadlock, Note, TileError
from tile_core.interp.execution_state import BlockState, ConcurrentLanes, Lanes
from tile_core.interp.memory import Storage
from tile_core.interp.parallel import granule_values, set_granules
from tile_core.interp.statement_facts import cuts
from tile_core.interp.statements import run, steps
from tile_core.interp.values import Array, carrier
from tile_core.interp.wait_events import (
    Collective,
    Event,
    GridWait,
    Pending,
    Vote,
    Wait,
    YieldPoint,
)
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import Node
from tile_core.ir.stmt import Launch, Let, Stmt
from tile_core.ops.control import Barrier
from tile_core.ops.signals import WaitSignal
from tile_core.ops.verify_uniform_regions import WAY_OUT

WARP = 32


@dataclass(slots=True, eq=False)
class _Warp:
    lanes: Lanes
    program: Iterator[Event]
    event: Event | None = None
    done: bool = False


def run_threads(launch: Launch, block: BlockState, host: Lanes) -> Iterator[Event]:
    """Run a block of explicit threads; yield where it waits for other blocks.

    Raises `Deadlock` if threads wait for something that can no longer happen.
    """
    try:
        yield from _schedule_warps(_warps(launch, block, host), block)
    except DataRace:
        raise
    except TileError as error:
        if block.pending is None or block.pending is error:
            raise
        raise block.pending from error
    _raise_pending(block)


def _raise_pending(block: BlockState) -> None:
    if block.pending is not None:
        raise block.pending


def _new_epoch(block: BlockState) -> None:
    """Threads have met: what they did before is done."""
    _raise_pending(block)
    block.thread_epoch = block.machine.next_epoch()


def _schedule_warps(warps: list[_Warp], block: BlockState) -> Iterator[Event]:
    arrivals: dict[int, int] = {}
    while not all(w.done for w in warps):
        before = block.machine.stores
        _wake(warps)
        progressed = [_advance(w) for w in warps if not w.done and w.event is None]
        released = _release(warps, block, arrivals)
        if any(progressed) or released or block.machine.stores != before:
            continue
        spinning = [w.event for w in warps if isinstance(w.event, (YieldPoint, GridWait, Pending))]
        at_grid = [e for e in spinning if isinstance(e, GridWait)]
        if at_grid and len(at_grid) == len(warps):
            _new_epoch(block)
            yield at_grid[0]
            for warp in warps:
                warp.event = None
        elif any(_may_end(e, block) for e in spinning):
            yield next(e for e in spinning if _may_end(e, block))
        else:
            raise _stuck(warps, block)


def _may_end(event: Event, block: BlockState) -> bool:
    """Whether other blocks can end a wait."""
    in_cluster = block.cluster is not None and block.cluster.size > 1
    if isinstance(event, Pending):
        return in_cluster or isinstance(event.node, WaitSignal)
    return isinstance(event, YieldPoint)


def _parts(launch: Launch, block: BlockState, host: Lanes) -> list[_Warp]:
    """Return one lane for each range of threads that go the same way in a program of tiles."""
    bounds = cuts(launch)
    parts = []
    for number, (first, last) in enumerate(pairwise(bounds)):
        lanes = Lanes(block, block.machine)
        lanes.env, lanes.safe = dict(host.env), host.safe
        lanes.first, lanes.weight, lanes.is_part = first, last - first, True
        lanes.team = (0, block.threads)
        lanes.warp = number if len(bounds) > 2 else None
        parts.append(_Warp(lanes, steps(launch.body, lanes)))
    return parts


def _warps(launch: Launch, block: BlockState, host: Lanes) -> list[_Warp]:
    if not is_thread_program(launch):
        return _parts(launch, block, host)
    x, y, _ = launch.threads
    warps = []
    for number, first in enumerate(range(0, block.threads, WARP)):
        ids = np.arange(first, min(first + WARP, block.threads))
        lanes = Lanes(block, block.machine, len(ids))
        lanes.env = dict(host.env)
        lanes.safe, lanes.warp = host.safe, number
        lanes.first, lanes.team = first, (0, block.threads)
        for var, index in zip(launch.thread_vars, (ids % x, ids // x % y, ids // (x * y)),
                              strict=True):  # fmt: skip
            lanes.env[var] = index.astype(carrier(var.dtype))
        party = ids.astype(np.int32)
        lanes.rivals = ConcurrentLanes("threads", party, lambda: block.thread_epoch, None)
        warps.append(_Warp(lanes, steps(launch.body, lanes)))
    return warps


def _advance(warp: _Warp) -> bool:
    """Run a warp to its next pause; return whether it did more than spin."""
    try:
        warp.event = next(warp.program)
    except StopIteration:
        warp.done = True
        return True
    return not isinstance(warp.event, YieldPoint)


def _wake(warps: list[_Warp]) -> None:
    for warp in warps:
        event = warp.event
        if isinstance(event, YieldPoint) or (isinstance(event, Pending) and event.is_over()):
            warp.event = None


def _release(warps: list[_Warp], block: BlockState, arrivals: dict[int, int]) -> bool:
    """Let go whoever has what it waits for; return whether anybody was."""
    released = _release_named(warps, block, arrivals)
    for first, count in {w.lanes.team for w in warps if not w.done and w.lanes.team}:
        team = [w for w in warps if w.lanes.among((first, count)).any()]
        released |= _release_team(team, (first, count), block)
    return released


def _release_team(warps: list[_Warp], team: tuple[int, int], block: BlockState) -> bool:
    """Let go the threads of a range that have all come to the same place."""
    waiting = [
        w
        for w in warps
        if not w.done and w.event is not None and w.lanes.team == team and _is_for_all(w.event)
    ]
    released = False
    if waiting and len(waiting) == len(warps):
        nodes = {w.event.node for w in waiting if w.event is not None}
        if len(nodes) > 1:
            raise _apart([w.event for w in waiting if w.event is not None])
        _new_epoch(block)
        event = waiting[0].event
        if isinstance(event, Collective):
            _together(event.node, [w.lanes for w in waiting], block)
            _new_epoch(block)
        elif isinstance(event, Vote):
            _count_votes([w.event for w in waiting if isinstance(w.event, Vote)])
        for warp in waiting:
            warp.event = None
        released = True
    return released


def _is_for_all(event: Event) -> bool:
    if isinstance(event, Wait):
        return event.number is None
    return isinstance(event, (Collective, Vote))


def _release_named(warps: list[_Warp], block: BlockState, arrivals: dict[int, int]) -> bool:
    """Named barriers: those that only arrive go on at once, the others when enough are there."""
    released = False
    for warp in warps:
        event = warp.event
        if isinstance(event, Wait) and event.number is not None:
            if not isinstance(event.node, Barrier) or not event.node.arrives_only:
                continue
            arrivals[event.number] = arrivals.get(event.number, 0) + event.threads
            warp.event, released = None, True
    numbers = {w.event.number for w in warps if isinstance(w.event, Wait)}
    for number in numbers - {None}:
        assert number is not None
        here = [w for w in warps if isinstance(w.event, Wait) and w.event.number == number]
        events = [w.event for w in here if isinstance(w.event, Wait)]
        needed = max(e.needed or _all_of(e.lanes, block) for e in events)
        if sum(e.threads for e in events) + arrivals.get(number, 0) >= needed:
            arrivals.pop(number, None)
            _new_epoch(block)
            for warp in here:
                warp.event = None
            released = True
    return released


def _all_of(lanes: Lanes, block: BlockState) -> int:
    return block.threads if lanes.team is None else lanes.team[1]


def _count_votes(votes: list[Vote]) -> None:
    columns = [np.broadcast_to(v.values, (v.lanes.count,)) != 0 for v in votes]
    flags = np.concatenate(columns)
    result = {
        "syncthreads_count": int(flags.sum()),
        "syncthreads_and": int(flags.all()),
        "syncthreads_or": int(flags.any()),
    }[votes[0].node.function]
    for vote in votes:
        vote.lanes.votes[vote.node] = np.array([result], np.int32)


# What the whole block does together ----------------------------------------------------------


def _together(stmt: Stmt, warps: list[Lanes], block: BlockState) -> None:
    """Run a tile operation once, for all threads."""
    machine = block.machine
    one = Lanes(block, machine)
    one.safe, one.span = warps[0].safe, stmt.span or warps[0].span
    facts = machine.facts(stmt)
    for var in facts.variables:
        columns = [w.env[var] for w in warps if var in w.env]
        if columns:
            values = np.concatenate(columns)
            what = f"{var.name!r}, used in a tile operation,"
            value = one.agreed(values, what, one.span, WAY_OUT)
            one.env[var] = np.array([value])
    one.env = {**machine.symbols, **one.env}
    shared = [root for root in facts.private if all(root in w.private for w in warps)]
    for root in shared:
        one.private[root] = _joined(root, warps)
    run(stmt, one)
    if isinstance(stmt, Let):
        for warp in warps:
            warp.env[stmt.var] = one.env[stmt.var]
    for root in shared:
        if root in facts.written:
            _spread(one, root, warps)


def _joined(root: Buffer, warps: list[Lanes]) -> Storage:
    """Return one copy of private memory: what all threads agree on, the rest undefined."""
    copies = [w.private[root] for w in warps]
    width = copies[0].copy_bytes * 8 // copies[0].granule
    values = np.concatenate([granule_values(c).reshape(-1, width) for c in copies])
    known = np.concatenate([_written(c).reshape(-1, width) for c in copies])
    single = Storage(root.name, np.zeros(copies[0].copy_bytes, np.uint8), copies[0].granule, False)
    set_granules(single, values[0])
    single.written = (values == values[0]).all(axis=0) & known.all(axis=0)
    return single


def _written(storage: Storage) -> Array:
    return np.ones(storage.granules, np.bool_) if storage.written is None else storage.written


def _spread(one: Lanes, root: Buffer, warps: list[Lanes]) -> None:
    single = one.private[root]
    for warp in warps:
        copies = warp.private[root]
        count = len(copies.raw) // copies.copy_bytes
        copies.raw[:] = np.tile(single.raw, count)
        if copies.written is not None:
            copies.written[:] = np.tile(_written(single), count)


# What went wrong, in words -------------------------------------------------------------------


def _places(events: list[Event]) -> tuple[Note, ...]:
    nodes: dict[Node, int] = {}
    told = []
    for event in events:
        if isinstance(event, Pending):
            told.append(Note(waits_for(event), event.node.span))
        else:
            nodes[event.node] = nodes.get(event.node, 0) + 1
    told += [
        Note(f"{count} warp{'s' * (count > 1)} wait{'s' * (count == 1)} here", node.span)
        for node, count in nodes.items()
    ]
    return tuple(told)


def _apart(events: list[Event]) -> Deadlock:
    return Deadlock(
        "threads of one block wait at different places",
        span=events[0].node.span,
        notes=_places(events[1:]),
        hint="every thread of the block must reach the same T.sync_threads()",
    )


def waits_for(event: Pending) -> str:
    """Return which threads wait, and what they lack, in words."""
    first, threads = event.lanes.first, event.threads
    who = f"thread {first}" if threads == 1 else f"{threads} threads from {first} on"
    return f"{who} wait{'s' * (threads == 1)} here: {event.lacks()}"


def _stuck(warps: list[_Warp], block: BlockState) -> Deadlock:
    events = [w.event for w in warps if w.event is not None]
    done = sum(w.done for w in warps)
    what = "parts" if warps[0].lanes.is_part else "warps"
    rest = f"{done} of {len(warps)} {what} have finished" if done else "nobody can go on"
    hint = "every thread of the block must reach the same T.sync_threads()"
    if any(isinstance(e, Pending) for e in events):
        hint = "count what arrives at each barrier, and compare parities: the first phase has 0"
    return Deadlock(
        f"threads of block {block.number} wait for ever: {rest}",
        span=events[0].node.span if events else None,
        notes=_places(events),
        hint=hint,
    )
