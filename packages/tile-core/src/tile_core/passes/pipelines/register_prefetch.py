"""Copies that run ahead through registers, on machines whose copies occupy their threads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress

from tile_core.analysis.memory_access import MemoryAccess
from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import TileError
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.effects import Mode
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Alloc, Launch
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.passes.pipelines.asynchronous_copies import may_be_asynchronous
from tile_core.passes.pipelines.dependences import Dependences, Schedule, Violation
from tile_core.passes.pipelines.loop_body import Piece, PipelineBody, described
from tile_core.passes.pipelines.schedule import (
    PipelineSchedule,
    Requirement,
    is_used,
    places_in,
    require_private,
    what_comes_before,
)
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable

AHEAD = 1
"""Iterations that a tile is fetched ahead: more would take registers for every iteration more."""

ACCUMULATORS_CAN_BE_OPERANDS = "mma_m16n8k8_f16"
"""The feature of machines whose accumulators are in the threads that need them as operands."""


@dataclass(frozen=True, slots=True)
class PrefetchBudget:
    """What a launch may spend on copies that run ahead.

    Each of the `threads` of a block may keep tiles in `register_bytes`; second versions of tiles
    may take `shared_bytes`.
    """

    threads: int
    register_bytes: int
    shared_bytes: int


def prefetch_budget(launch: Launch, machine: SimtMachine) -> PrefetchBudget:
    """Return what `launch` leaves free of a thread's registers and of shared memory.

    A quarter of the registers is left for indices and operands of products. Second versions
    fill no more than half of the shared memory, so that two blocks can be resident; where
    accumulators are spread in another way than operands, room for exchanging the largest
    operand in registers is taken too.
    """
    threads = math.prod(launch.threads)
    tiles = [n.buffer for n in nodes_of(launch.body, Alloc)]
    kept = sum(_bytes(t) for t in tiles if t.scope is Scope.FRAGMENT)
    taken = sum(_bytes(t) for t in tiles if t.scope is Scope.SHARED)
    if not machine.has(ACCUMULATORS_CAN_BE_OPERANDS):
        products = [*nodes_of(launch.body, Gemm)]
        operands = {r.buffer for p in products for r in (p.a, p.b)}
        exchanged = max((_bytes(f) for f in operands if f.scope is Scope.FRAGMENT), default=0)
        taken += exchanged * 9 // 8  # its rows are padded
    registers = machine.registers * 4 * 3 // 4 - kept // threads
    return PrefetchBudget(threads, registers, machine.shared_bytes // 2 - taken)


@dataclass(frozen=True, slots=True)
class Halves:
    """A body whose copies into tiles go through registers.

    The `body` has two pieces in the place of one; `loads` gives the position of the piece that
    fetches for that of a piece that stores. A copy stays whole because it is `narrow`: its elements
    come one by one.
    """

    body: PipelineBody
    loads: Mapping[int, int]
    narrow: bool = False


def in_halves(body: PipelineBody, budget: PrefetchBudget, env: ConstraintSet) -> Halves:
    """Return `body` with each copy into a tile as a load into registers, and a store.

    Before   copy A[k], A_s
    After    copy A[k], A_s_ahead;  copy A_s_ahead, A_s          (A_s_ahead: a fragment)

    Conversions belong to the store: the load has nothing to wait for. Copies that the user
    says the way of stay whole, and those for which registers are missing. So do copies of
    single elements narrower than a word: each would hold a register of its own for an iteration,
    with all that its load needs.
    """
    made, outside = list[Piece](), list(body.outside)
    named = {v for p in body.pieces for v in p.defines}
    loads: dict[int, int] = {}
    left = budget.register_bytes
    for k, piece in enumerate(body.pieces):
        fetched = is_used(body.pieces, k) and may_be_asynchronous(piece.copy, env)
        pair = _halves(piece) if fetched else None
        cost = -(-_bytes(pair[0].dst.buffer) // budget.threads) if pair is not None else 0
        if pair is None or cost > left:
            made.append(piece)
            continue
        left -= cost
        outside.append(Alloc(pair[0].dst.buffer, span=piece.span))
        loads[len(made) + 1] = len(made)
        made += [described(replace(piece, stmt=half), named) for half in pair]
    narrow = any(p.copy is not None and not may_be_asynchronous(p.copy, env) for p in body.pieces)
    return Halves(PipelineBody(tuple(made), tuple(outside), body.moving), loads, narrow)


def _halves(piece: Piece) -> tuple[Copy, Copy] | None:
    """Return the load and the store that a copy consists of, if it can be taken apart."""
    copy = piece.copy
    if copy is None or copy.loop_layout is not None or copy.prefer_instruction is not None:
        return None
    dtypes = (copy.src.buffer.dtype, copy.dst.buffer.dtype)
    extents = copy.dst.static_extents
    if extents is None or any(t.bits < 8 or t.is_bool or t.lanes > 1 for t in dtypes):
        return None
    name = f"{copy.dst.buffer.name}_ahead"
    registers = whole(Buffer(name, extents, dtypes[0], Scope.FRAGMENT, span=copy.span))
    pair = replace(copy, dst=registers), Copy(registers, copy.dst, span=copy.span)
    try:
        for half in pair:
            half.verify()
    except TileError:
        return None
    return pair


def through_registers(
    halves: Halves, deps: Dependences, require: Requirement, budget: PrefetchBudget
) -> PipelineSchedule:
    """Return the schedule in which loads run one iteration ahead of the stores.

    Before   for k: load A[k];  store A_s;  gemm A_s
    After    load A[0];  for k: store A_s;  load A[k + 1];  gemm A_s

    An iteration's loads are begun when the registers of the last ones are free, and have until the
    next iteration to arrive. Tiles get a second version where shared memory has room for it: a
    iteration's stores then need not wait for the products of the iteration before.

    Loops of which all copies are narrow run iteration after iteration, as they stand. It is
    `NotApplicable` if no copy can run ahead.
    """
    groups: dict[int, frozenset[int]] = {}
    if not halves.loads and halves.narrow:
        count = len(deps.pieces)
        return PipelineSchedule(Schedule(tuple(range(count)), (0,) * count), frozenset())
    why = "no T.copy in it brings a tile of shared memory that it uses later"
    for store, load in halves.loads.items():
        try:
            groups[store] = what_comes_before(deps, load)
        except NotApplicable as reason:
            why = f"this copy cannot run ahead: {reason.reason}"
    while groups:
        schedule = _schedule(halves, deps, groups, require)
        broken = deps.violation(schedule)
        if broken is None:
            return PipelineSchedule(_with_budget(schedule, deps, budget), frozenset())
        why = "this copy cannot run ahead: its iterations depend on each other"
        groups = _without_culprits(groups, broken)
    raise NotApplicable(why, deps.pieces[min(halves.loads, default=0)].span)


def _schedule(
    halves: Halves, deps: Dependences, groups: Mapping[int, frozenset[int]], require: Requirement
) -> Schedule:
    """Return the schedule in which the groups run in stage 0, behind their own stores."""
    front = frozenset(k for group in groups.values() for k in group)
    order = places_in(list(_sequence(halves, deps, groups, front)))
    stage = tuple(0 if k in front else AHEAD for k in range(len(deps.pieces)))
    filled = {t.storage for k in (*front, *groups) for t in deps.pieces[k].touches if _fills(t)}
    versions: dict[Buffer, int] = {}
    for storage in filled:
        with suppress(NotApplicable):
            require_private(deps, storage)
            require(storage)
            versions[storage] = AHEAD + 1
    return Schedule(order, stage, versions)


def _fills(touch: MemoryAccess) -> bool:
    return touch.mode is not Mode.READ and touch.storage.scope is Scope.SHARED


def _without_culprits(
    groups: Mapping[int, frozenset[int]], broken: Violation
) -> dict[int, frozenset[int]]:
    """Return the groups that have no part in a broken dependence; none if none has."""
    parts = {broken.first, broken.second}
    kept = {s: group for s, group in groups.items() if s not in parts and not group & parts}
    return kept if len(kept) < len(groups) else {}


def _sequence(
    halves: Halves, deps: Dependences, groups: Mapping[int, frozenset[int]], front: frozenset[int]
) -> Iterator[int]:
    """Yield all pieces: loads follow the last of neighbouring stores."""
    due: list[int] = []
    for k in range(len(deps.pieces)):
        if k in front:
            continue
        if k not in halves.loads:
            yield from due
            due = []
        yield k
        if k in groups:
            due += [m for m in sorted(groups[k]) if m not in due]
    yield from due


def _with_budget(schedule: Schedule, deps: Dependences, budget: PrefetchBudget) -> Schedule:
    """Return the schedule with second versions only where needed, or where there is room."""
    versions = dict(schedule.versions)
    left = budget.shared_bytes
    for storage in sorted(versions, key=lambda b: b.name):
        fewer = replace(schedule, versions={**versions, storage: 1})
        if deps.violation(fewer) is None:
            if _bytes(storage) > left:
                versions[storage] = 1
                continue
            left -= _bytes(storage)
    return replace(schedule, versions=versions)


def _bytes(tile: Buffer) -> int:
    shape = tile.static_shape
    return 0 if shape is None else math.prod(shape) * tile.dtype.bits // 8
