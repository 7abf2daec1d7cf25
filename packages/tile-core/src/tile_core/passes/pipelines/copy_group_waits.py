"""Groups of copies in flight, and where a pipeline waits for how many of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias

from tile_core.ir.effects import Mode
from tile_core.passes.pipelines.loop_body import Piece
from tile_core.passes.pipelines.schedule import PipelineSchedule
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Begin:
    """Run a piece."""

    piece: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close the group of copies whose last one is `piece`."""

    piece: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until `pending` groups are in flight, for the sake of `piece`."""

    pending: int
    piece: int


Event: TypeAlias = "Begin | Close | Wait"


@dataclass(frozen=True, slots=True)
class Events:
    """What happens in one step of time.

    There is an entry for each step before (`early`) and after (`late`) the steady state.
    """

    early: tuple[tuple[Event, ...], ...]
    steady: tuple[Event, ...]
    late: tuple[tuple[Event, ...], ...]


def events_of(pieces: Sequence[Piece], plan: PipelineSchedule, *, late: bool = False) -> Events:
    """Return the pieces of each step in order, with the groups and waits between them.

    Asynchronous copies of one stage that follow each other form a group. Each step closes
    every group, also an empty one, so that counting groups is counting steps; only after the
    last iteration has begun, groups of stages that are over are no more. Before a statement that
    uses what a group brings, the step waits until no more groups are in flight than were
    closed after that one. The wait stands in front of copies that come directly before the
    statement: one barrier then separates the tile's last use, the copies, and the next use. If
    waits are `late` they stand behind those copies, which then are in flight while the threads
    wait; it takes a barrier more.
    """
    line = _Line(pieces, plan, late=late)
    depth = plan.schedule.depth
    return Events(
        tuple(line.events(early=time) for time in range(depth)),
        line.events(),
        tuple(line.events(late=late) for late in range(depth)),
    )


class _Line:
    """The pieces in the order of the schedule, and the groups they form."""

    def __init__(
        self, pieces: Sequence[Piece], plan: PipelineSchedule, *, late: bool = False
    ) -> None:
        self.pieces, self.plan, self.waits_late = pieces, plan, late
        self.stage = plan.schedule.stage
        self.sequence = sorted(range(len(pieces)), key=lambda k: plan.schedule.order[k])
        runs = groupby(self.sequence, lambda k: (k in plan.asynchronous, self.stage[k]))
        self.groups = [list(run) for (is_asynchronous, _), run in runs if is_asynchronous]
        self.group_of = {k: n for n, group in enumerate(self.groups) for k in group}

    def events(self, early: int | None = None, late: int | None = None) -> tuple[Event, ...]:
        """Return the events of a step: before, in, or after the steady state."""
        begun: list[Begin | Close] = []
        for k in self.sequence:
            if late is not None and self.stage[k] <= late:
                continue
            begun.append(Begin(k))
            if k in self.group_of and self.groups[self.group_of[k]][-1] == k:
                begun.append(Close(k))
        waits: dict[int, Wait] = {}
        for position, event in enumerate(begun):
            if isinstance(event, Begin) and (early is None or self.stage[event.piece] <= early):
                self._add_wait(begun, position, event.piece, late, waits)
        return tuple(_merged(begun, waits))

    def _add_wait(
        self,
        begun: Sequence[Begin | Close],
        position: int,
        user: int,
        late: int | None,
        waits: dict[int, Wait],
    ) -> None:
        needed = [c for c in self.group_of if c != user and self._uses(user, c)]
        if not needed:
            return
        while position > 0 and self._may_follow(begun[position - 1], user, needed):
            position -= 1
        pending = min(self._closed_since(c, user, begun[:position], late) for c in needed)
        known = waits.get(position)
        if known is None or pending < known.pending:
            waits[position] = Wait(pending, user)

    def _uses(self, user: int, copy: int) -> bool:
        """Whether a piece touches what an asynchronous copy before it in the iteration writes."""
        made = {t.storage for t in self.pieces[copy].touches if t.mode is not Mode.READ}
        return user > copy and any(t.storage in made for t in self.pieces[user].touches)

    def _may_follow(self, event: Begin | Close, user: int, needed: Sequence[int]) -> bool:
        """Whether the wait for `user` may stand before an event that comes before it."""
        if self.waits_late or self.stage[event.piece] >= self.stage[user]:
            return False
        return not any(
            self.stage[c] == self.stage[user] and self.group_of[c] == self.group_of.get(event.piece)
            for c in needed
        )

    def _closed_since(
        self, copy: int, user: int, before: Sequence[Begin | Close], late: int | None
    ) -> int:
        """Return how many groups were closed after that of `copy`, for the iteration of `user`."""
        distance = self.stage[user] - self.stage[copy]
        closed_now = [self.group_of[e.piece] for e in before if isinstance(e, Close)]
        own = self.group_of[copy]
        if distance == 0:
            return len(closed_now) - 1 - closed_now.index(own)
        then = None if late is None else late - distance
        after = sum(1 for g in self._groups_at(then) if g > own)
        for step in range(1, distance):
            after += len(self._groups_at(None if then is None else then + step))
        return after + len(closed_now)

    def _groups_at(self, late: int | None) -> list[int]:
        """Return the groups that a step closes."""
        return [
            n
            for n, group in enumerate(self.groups)
            if late is None or late < 0 or self.stage[group[0]] > late
        ]


def _merged(begun: Sequence[Begin | Close], waits: dict[int, Wait]) -> list[Event]:
    """Return the events with the waits that those before them do not make superfluous."""
    merged: list[Event] = []
    at_most: int | None = None
    for position, event in enumerate(begun):
        wait = waits.get(position)
        if wait is not None and (at_most is None or wait.pending < at_most):
            merged.append(wait)
            at_most = wait.pending
        merged.append(event)
        if isinstance(event, Close) and at_most is not None:
            at_most += 1
    return merged
