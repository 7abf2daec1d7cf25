"""When each statement of a pipelined loop runs: found from dependences, or given by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tile_core.errors import Note, ScheduleError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import Mode
from tile_core.ir.expr import Var
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Hint,
    Leaf,
    Let,
    Parallel,
    Pipelined,
    flattened,
)
from tile_core.ops.copy import Copy
from tile_core.passes.pipelines.dependences import Dependences, Schedule, Violation
from tile_core.passes.pipelines.loop_body import BranchPredicate, Piece
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable

_UNCOUNTED = (Alloc, AnnotateLayout, AnnotateSafeValue, Hint)

Requirement = Callable[[Buffer], None]
"""Why a storage cannot have several versions, in words; None if it can."""


@dataclass(frozen=True, slots=True)
class PipelineSchedule:
    """A legal schedule, and what is asynchronous in it.

    Copies at the positions `asynchronous` are in flight while other statements run; those `left`
    could not run ahead, for the reason given.
    """

    schedule: Schedule
    asynchronous: frozenset[int]
    left: tuple[tuple[Piece, str], ...] = ()


def can_be_asynchronous(copy: Copy) -> bool:
    """Whether hardware that copies bytes can do it: no conversion, whole bytes."""
    source, target = copy.src.buffer.dtype, copy.dst.buffer.dtype
    return source == target and source.bits >= 8 and not source.is_bool


def automatic(
    loop: Pipelined, deps: Dependences, require: Requirement, *, behind: bool = False
) -> PipelineSchedule:
    """Return the schedule in which copies into tiles run ``num_stages - 1`` iterations ahead.

    Copies and what must come before them are in stage 0, everything else in the last stage;
    they stand in front of the first statement that uses what they bring. A copy that would
    break a dependence stays where it is. If `behind`, copies that run two iterations ahead or more,
    in every iteration, stand behind all else. Where threads take some time to begin them, they then
    do so while products are in flight. Tiles have as many versions as before: there is no barrier
    between the two. It is `NotApplicable` if no copy can run ahead.
    """
    pieces, depth = deps.pieces, loop.num_stages - 1
    masked = any(isinstance(step, BranchPredicate) for p in pieces if p.copy for step in p.prefix)
    behind = behind and depth >= 2 and not masked
    left: dict[int, str] = {}
    groups = {}
    for k, piece in enumerate(pieces):
        copy = piece.copy
        if copy is None or not is_used(pieces, k):
            continue
        try:
            if not can_be_asynchronous(copy):
                raise NotApplicable("it converts elements")
            groups[k] = what_comes_before(deps, k)
        except NotApplicable as reason:
            left[k] = reason.reason
    while groups:
        schedule = _ahead(deps, groups, depth, behind=behind)
        trouble = _trouble(deps, groups, schedule, require)
        if trouble is None:
            reasons = tuple((pieces[k], why) for k, why in sorted(left.items()))
            final = schedule if behind else _versioned(deps, schedule)
            return PipelineSchedule(final, frozenset(groups), reasons)
        culprits, why = trouble
        for k in culprits:
            left[k] = why
            del groups[k]
    first = min(left, default=None)
    if first is None:
        raise NotApplicable("no T.copy in it brings a tile of shared memory that it uses later")
    raise NotApplicable(f"this copy cannot run ahead: {left[first]}", pieces[first].span)


def _may_run_ahead(deps: Dependences, k: int) -> bool:
    """Whether a piece is a copy that hardware could do asynchronously."""
    copy = deps.pieces[k].copy
    return copy is not None and can_be_asynchronous(copy) and is_used(deps.pieces, k)


def is_used(pieces: Sequence[Piece], copy: int) -> bool:
    """Whether a later piece of the iteration reads what the copy brings."""
    made = {t.storage for t in pieces[copy].touches if t.mode is not Mode.READ}
    later = (t for piece in pieces[copy + 1 :] for t in piece.touches)
    return any(t.storage in made and t.mode is not Mode.WRITE for t in later)


def what_comes_before(deps: Dependences, copy: int) -> frozenset[int]:
    """Return the copy with all that must come before it, or raise why it cannot run ahead."""
    group, todo = {copy}, [copy]
    while todo:
        later = todo.pop()
        for earlier in range(later):
            if earlier in group or not _must_precede(deps, earlier, later):
                continue
            _require_movable(deps.pieces[earlier])
            if _may_run_ahead(deps, earlier):
                raise NotApplicable(f"it must come after another copy{_line(deps.pieces[earlier])}")
            group.add(earlier)
            todo.append(earlier)
    return frozenset(group)


def _must_precede(deps: Dependences, earlier: int, later: int) -> bool:
    a, b = deps.pieces[earlier], deps.pieces[later]
    return bool(a.defines & b.uses) or deps.shared(earlier, later, 0, {}) is not None


def _require_movable(piece: Piece) -> None:
    """Refuse a statement that a copy depends on and that cannot run ahead with it."""
    if isinstance(piece.stmt, (Leaf, Parallel)) and not piece.acts:
        written = [t.storage for t in piece.touches if t.mode is not Mode.READ]
        if all(s.scope is Scope.SHARED for s in written):
            return
    raise NotApplicable(f"it depends on an earlier statement of the iteration{_line(piece)}")


def _line(piece: Piece) -> str:
    return f" (line {piece.span.line})" if piece.span is not None else ""


def _ahead(
    deps: Dependences, groups: Mapping[int, frozenset[int]], depth: int, *, behind: bool
) -> Schedule:
    """Return the schedule in which `groups` run in stage 0, in front of their users or last."""
    front = frozenset(k for group in groups.values() for k in group)
    helpers = [k for k in sorted(front) if k not in groups]
    rest = [k for k in range(len(deps.pieces)) if k not in front]
    made = {t.storage for k in front for t in deps.pieces[k].touches if t.mode is not Mode.READ}
    place = next(
        (n for n, k in enumerate(rest) if any(t.storage in made for t in deps.pieces[k].touches)),
        len(rest),
    )
    place = len(rest) if behind else place
    sequence = [*rest[:place], *helpers, *sorted(groups), *rest[place:]]
    stage = tuple(0 if k in front else depth for k in range(len(deps.pieces)))
    tiles = {s: depth + 1 for s in made}
    return Schedule(places_in(sequence), stage, tiles)


def places_in(sequence: Sequence[int]) -> tuple[int, ...]:
    """Return the place of each number below their count in a sequence of all of them."""
    return tuple(sorted(range(len(sequence)), key=sequence.__getitem__))


def _trouble(
    deps: Dependences,
    groups: Mapping[int, frozenset[int]],
    schedule: Schedule,
    require: Requirement,
) -> tuple[set[int], str] | None:
    """Return which copies must stay, and why, if the schedule is not legal."""
    for storage in schedule.versions:
        try:
            require_private(deps, storage)
            require(storage)
        except NotApplicable as why:
            return _writers(deps, groups, storage), why.reason
    broken = deps.violation(schedule)
    if broken is None:
        return None
    culprits = {k for k, group in groups.items() if broken.first in group or broken.second in group}
    return culprits or set(groups), _why(deps, broken)


def _writers(deps: Dependences, groups: Mapping[int, frozenset[int]], storage: Buffer) -> set[int]:
    """Return the copies that write `storage`, or need something before them that does."""
    return {k for k, group in groups.items() if any(deps.pieces[m].writes(storage) for m in group)}


def require_private(deps: Dependences, storage: Buffer) -> None:
    """Refuse a `storage` of which iterations cannot each have their own."""
    claimed = deps.unclaimed(storage)
    if claimed is not None:
        what = f"what an earlier one left in {storage.name!r}"
        raise NotApplicable(f"an iteration may read {what}{_line(claimed)}")


def _why(deps: Dependences, broken: Violation) -> str:
    first, second = deps.pieces[broken.first], deps.pieces[broken.second]
    what = "their order shows" if broken.what is None else f"both touch {broken.what.name!r}"
    lines = [f"line {p.span.line}" for p in (first, second) if p.span is not None]
    between = " and ".join(lines) or "two statements"
    distance = "1 iteration" if broken.iterations == 1 else f"{broken.iterations} iterations"
    later = f", {distance} apart" if broken.iterations else ""
    return f"it would exchange {between}{later}: {what}"


def _versioned(deps: Dependences, schedule: Schedule) -> Schedule:
    """Return the schedule with as few versions of each tile as are enough."""
    versions = dict(schedule.versions)
    for storage in schedule.versions:
        for count in range(1, schedule.depth + 2):
            tried = replace(schedule, versions={**versions, storage: count})
            if deps.violation(tried) is None:
                versions[storage] = count
                break
    return replace(schedule, versions=versions)


# Given by the user -------------------------------------------------------------------------------


def by_hand(loop: Pipelined, deps: Dependences, require: Requirement) -> PipelineSchedule:
    """Return the user's schedule.

    Tiles in shared memory get as many versions as it needs. Copies into them that are in an
    earlier stage than whatever uses them are asynchronous. It is a `ScheduleError` if it breaks a
    dependence.
    """
    order, stage = _entries(_without_names(loop), deps)
    shared = {
        t.storage: 1
        for p in deps.pieces
        for t in p.touches
        if t.storage.scope is Scope.SHARED and t.mode is not Mode.READ
    }
    own = {s for s in shared if deps.unclaimed(s) is None}
    schedule = Schedule(order, stage, {})
    most = {s: schedule.depth + 1 for s in own}
    broken = deps.violation(replace(schedule, versions=most))
    if broken is not None:
        raise _illegal(loop, deps, broken)
    schedule = _versioned(deps, replace(schedule, versions=most))
    for storage, count in schedule.versions.items():
        if count > 1:
            try:
                require(storage)
            except NotApplicable as why:
                raise NotApplicable(why.reason, storage.span) from None
    ahead = frozenset(k for k, p in enumerate(deps.pieces) if _runs_ahead(deps, schedule, k, p))
    return PipelineSchedule(schedule, ahead)


def _runs_ahead(deps: Dependences, schedule: Schedule, k: int, piece: Piece) -> bool:
    copy = piece.copy
    if copy is None or not can_be_asynchronous(copy) or not is_used(deps.pieces, k):
        return False
    others = (m for m in range(len(deps.pieces)) if m != k)
    users = [m for m in others if deps.shared(min(k, m), max(k, m), 0, {}) is not None]
    return all(m > k and schedule.stage[m] > schedule.stage[k] for m in users)


def _without_names(loop: Pipelined) -> Pipelined:
    """Return the loop with a schedule that has no entries for names, which need none."""
    counted = [s for s in flattened(loop.body) if not isinstance(s, _UNCOUNTED)]
    if len(counted) != len(loop.order):
        return loop
    kept = [k for k, stmt in enumerate(counted) if not isinstance(stmt, Let)]
    return replace(
        loop, order=tuple(loop.order[k] for k in kept), stage=tuple(loop.stage[k] for k in kept)
    )


def _entries(loop: Pipelined, deps: Dependences) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return order and stage of each piece: those of the statement it is a part of."""
    rank: list[tuple[int, int]] = []
    stage: list[int] = []
    for k, piece in enumerate(deps.pieces):
        entry = piece.entry if piece.entry is not None else _first_user(deps, k)
        if entry is None or entry >= len(loop.order):
            rank.append((len(deps.pieces) + k, k))
            stage.append(max(loop.stage))
        else:
            before = -len(deps.pieces) if piece.entry is None else 0
            rank.append((loop.order[entry], before + k))
            stage.append(loop.stage[entry])
    sequence = sorted(range(len(rank)), key=lambda k: rank[k])
    return places_in(sequence), tuple(stage)


def _first_user(deps: Dependences, name: int) -> int | None:
    """Return the entry of the first statement that uses the name that a piece gives."""
    given = deps.pieces[name].defines
    for piece in deps.pieces[name + 1 :]:
        if piece.uses & given and piece.entry is not None:
            return piece.entry
    return None


def _illegal(loop: Pipelined, deps: Dependences, broken: Violation) -> ScheduleError:
    first, second = deps.pieces[broken.first], deps.pieces[broken.second]
    ahead = {0: "", 1: " of the next iteration"}.get(
        broken.iterations, f" {broken.iterations} iterations later"
    )
    return ScheduleError(
        f"order= and stage= run this statement{ahead} before another one that must come first: "
        f"{_shared_thing(broken.what)}",
        span=second.span or loop.span,
        notes=(Note("this one must come first", first.span),),
        hint="give it a later stage than the other, or a larger order in the same stage; without "
        "order= and stage= the compiler finds a schedule",
    )


def _shared_thing(what: Buffer | Var | None) -> str:
    if what is None:
        return "the order of what they do shows outside"
    if isinstance(what, Var):
        return f"it uses {what.name!r}, a value of its own iteration"
    return f"both touch {what.name!r}"
