"""Every order in which the roles of a block may run, with what goes wrong in any of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tile_core.testing.protocol.events import (
    Arrive,
    Event,
    Fill,
    Program,
    Settle,
    Slot,
    Use,
    Wait,
    Write,
)

MOST_STATES = 2_000_000


@dataclass(frozen=True, slots=True)
class Violation:
    """What goes wrong, and what everybody was about to do then."""

    what: str
    roles: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join((self.what, *self.roles))


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration found.

    Parameters
    ----------
    states
        How many different states there are.
    violation
        The first thing that goes wrong in some order, None if nothing does.
    """

    states: int
    violation: Violation | None


Phase: TypeAlias = tuple[int, int, int]
"""Of a barrier: completed phases, arrivals still needed, bytes still expected."""


@dataclass(frozen=True, slots=True)
class _State:
    """Where everybody is.

    Parameters
    ----------
    places
        The next event of each role.
    barriers
        One phase for each, in the order of names.
    tiles
        For each version of a tile the number of its last fill.
    flying
        Fills that have begun and not ended: role and place of the event.
    reading
        Products that go on: role, number of the product, version that they read.
    """

    places: tuple[int, ...]
    barriers: tuple[Phase, ...]
    tiles: tuple[tuple[Slot, int], ...]
    flying: frozenset[tuple[int, int]]
    reading: frozenset[tuple[int, int, Slot]]


class _Wrong(Exception):
    """A rule is broken."""


def explore(program: Program) -> Explored:
    """Return what can go wrong in any order of the events of all roles.

    Each fill may end at any time after it began, and fills in any order. Checked is that no
    order ends with somebody waiting forever; that whoever reads a version of a tile finds it
    filled, with the fill that the program means; that nobody fills a version that a product
    still reads, or that another fill is on its way to; that no barrier is arrived at more often
    than a phase allows, nor hears of bytes that nobody expects; that all barriers have seen
    whole phases in the end.
    """
    explorer = _Explorer(program)
    start = explorer.start()
    stack, seen = [start], {start}
    while stack:
        state = stack.pop()
        try:
            following = list(explorer.successors(state))
        except _Wrong as wrong:
            return Explored(len(seen), explorer.violation(str(wrong), state))
        if not following and not explorer.is_over(state):
            return Explored(len(seen), explorer.violation("nobody can go on", state))
        for after in following:
            if after not in seen:
                seen.add(after)
                stack.append(after)
        if len(seen) > MOST_STATES:
            raise OverflowError(f"more than {MOST_STATES} states: take smaller sizes")
    return Explored(len(seen), None)


class _Explorer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = sorted(program.arrivals)
        self.index = {name: k for k, name in enumerate(self.names)}

    def start(self) -> _State:
        phases = tuple((0, self.program.arrivals[name], 0) for name in self.names)
        return _State((0,) * len(self.program.roles), phases, (), frozenset(), frozenset())

    def is_over(self, state: _State) -> bool:
        done = all(p == len(r) for p, r in zip(state.places, self.program.roles, strict=True))
        return done and not state.flying

    def successors(self, state: _State) -> Iterator[_State]:
        """Yield the states after one more event, or after a fill has ended."""
        for role, place in enumerate(state.places):
            events = self.program.roles[role]
            if place < len(events):
                after = self.after(state, role, events[place])
                if after is not None:
                    places = (*state.places[:role], place + 1, *state.places[role + 1 :])
                    yield replace(after, places=places)
        for flight in state.flying:
            yield self.ended(state, flight)

    def after(self, state: _State, role: int, event: Event) -> _State | None:
        """Return the state after an event, None if it has to wait."""
        match event:
            case Wait(barrier=barrier, parity=parity):
                completed = state.barriers[self.index[barrier]][0]
                return state if (completed + 1) % 2 == parity else None
            case Arrive(barrier=barrier, count=count, nbytes=nbytes):
                return self.arrived(state, barrier, count, nbytes)
            case Fill():
                return self.begun(state, role, event)
            case Write(tile=tile, number=number):
                return self.filled(state, tile, number)
            case Use():
                return self.used(state, role, event)
            case Settle(begun=begun, pending=pending):
                going = {r for r in state.reading if r[0] != role or r[1] >= begun - pending}
                return replace(state, reading=frozenset(going))

    def arrived(self, state: _State, barrier: Slot, count: int, nbytes: int) -> _State:
        completed, needed, expected = state.barriers[self.index[barrier]]
        if count > needed:
            raise _Wrong(f"{_named(barrier)} is arrived at too often in one phase")
        return self.with_phase(state, barrier, (completed, needed - count, expected + nbytes))

    def with_phase(self, state: _State, barrier: Slot, phase: Phase) -> _State:
        completed, needed, expected = phase
        if needed == 0 and expected == 0:
            phase = (completed + 1, self.program.arrivals[barrier], 0)
        at = self.index[barrier]
        return replace(state, barriers=(*state.barriers[:at], phase, *state.barriers[at + 1 :]))

    def begun(self, state: _State, role: int, fill: Fill) -> _State:
        after = self.filled(state, fill.tile, fill.number)
        return replace(after, flying=state.flying | {(role, state.places[role])})

    def filled(self, state: _State, slot: Slot, number: int) -> _State:
        tile = _named(slot)
        if any(version == slot for _, _, version in state.reading):
            raise _Wrong(f"{tile} is filled while a product reads it")
        for other, place in state.flying:
            event = self.program.roles[other][place]
            if isinstance(event, Fill) and event.tile == slot:
                raise _Wrong(f"{tile} is filled while another fill is on its way")
        tiles = {**dict(state.tiles), slot: number}
        return replace(state, tiles=tuple(sorted(tiles.items())))

    def ended(self, state: _State, flight: tuple[int, int]) -> _State:
        fill = self.program.roles[flight[0]][flight[1]]
        assert isinstance(fill, Fill)
        completed, needed, expected = state.barriers[self.index[fill.barrier]]
        if expected < fill.nbytes:
            raise _Wrong(f"{_named(fill.barrier)} hears of bytes that nobody expects")
        state = replace(state, flying=state.flying - {flight})
        return self.with_phase(state, fill.barrier, (completed, needed, expected - fill.nbytes))

    def used(self, state: _State, role: int, use: Use) -> _State:
        tile = _named(use.tile)
        found = dict(state.tiles).get(use.tile)
        if found != use.number:
            raise _Wrong(f"{tile} holds fill {found} where fill {use.number} is meant")
        for other, place in state.flying:
            event = self.program.roles[other][place]
            if isinstance(event, Fill) and event.tile == use.tile:
                raise _Wrong(f"{tile} is read before its fill has ended")
        if use.lasts is None:
            return state
        return replace(state, reading=state.reading | {(role, use.lasts, use.tile)})

    def violation(self, what: str, state: _State) -> Violation:
        roles = []
        for number, (place, events) in enumerate(
            zip(state.places, self.program.roles, strict=True)
        ):
            doing = str(events[place]) if place < len(events) else "done"
            roles.append(f"role {number}, event {place} of {len(events)}: {doing}")
        for name, (completed, needed, expected) in zip(self.names, state.barriers, strict=True):
            roles.append(
                f"{_named(name)}: {completed} phases over, {needed} arrivals and {expected} "
                "bytes missing"
            )
        return Violation(what, tuple(roles))


def _named(slot: Slot) -> str:
    return f"{slot[0]}[{slot[1]}]"
