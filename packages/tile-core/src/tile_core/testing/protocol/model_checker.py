"""Every order in which the roles of a cluster may run, with what goes wrong in any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tile_core.errors import Span
from tile_core.testing.protocol.events import (
    Arrive,
    BarrierId,
    Box,
    Content,
    Event,
    Fill,
    Meet,
    Program,
    ProtocolBroken,
    Tile,
    Violation,
    Wait,
    Write,
    check_meant,
    shown,
)
from tile_core.testing.protocol.segments import Flight, Segment, clash, segments_of
from tile_core.testing.protocol.tile_accesses import held_in, put

MOST_STATES = 300_000


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration found."""

    states: int  # how many different states there are
    # The first thing that goes wrong in some order, None if nothing does.
    violation: Violation | None


Phase: TypeAlias = tuple[int, int, int]
"""Of a barrier: completed phases, arrivals still needed, bytes still expected."""

Part: TypeAlias = tuple[Tile, Box, Content]


@dataclass(frozen=True, slots=True)
class _State:
    """Where everybody is."""

    places: tuple[int, ...]  # the next segment of each role; it is still at the one before
    barriers: tuple[Phase, ...]  # one phase for each, in the order of names
    flying: frozenset[Flight]  # fills that have begun and not ended
    parts: frozenset[Part]  # what tiles hold


def explore(program: Program) -> Explored:
    """Return what can go wrong in any order of the events of all roles.

    Roles go on from one wait or arrival to just before the next; what they read and write in
    between counts as going on all that time, so that nothing is lost by not stopping inside.
    Fills that one barrier hears of end at any time, together: it goes on when all have. Checked
    is that no order ends with somebody waiting forever; that whoever reads a tile finds in it
    what the program means; that nobody writes what others read, or fill; that no barrier is
    arrived at more often than a phase allows, nor hears of bytes that nobody expects.

    Raises `OverflowError` if there are more than `MOST_STATES` states.
    """
    explorer = _Explorer(program)
    start = explorer.start()
    stack, seen = [start], {start}
    while stack:
        state = stack.pop()
        try:
            following = list(explorer.successors(state))
            if not following:
                explorer.check_over(state)
        except ProtocolBroken as wrong:
            report = Violation(wrong.what, wrong.span, tuple(explorer.told(state)))
            return Explored(len(seen), report)
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
        self.names = list(program.arrivals)
        self.index = {name: k for k, name in enumerate(self.names)}
        self.roles: list[Sequence[Segment]] = [
            segments_of(number, role) for number, role in enumerate(program.roles)
        ]
        self.apart: set[tuple[int, int, int, int, bool]] = set()  # pairs that do not clash

    def start(self) -> _State:
        phases = tuple((0, count, 0) for count in self.program.arrivals.values())
        state = _State((0,) * len(self.roles), phases, frozenset(), frozenset())
        for role in range(len(self.roles)):
            state = self.gone(state, role)
        return state

    def check_over(self, state: _State) -> None:
        for place, role in zip(state.places, self.roles, strict=True):
            if place < len(role):
                raise ProtocolBroken("nobody can go on", role[place].span)

    def successors(self, state: _State) -> Iterator[_State]:
        """Yield the states after one more segment, or after the fills of a barrier have ended."""
        for role, place in enumerate(state.places):
            if place < len(self.roles[role]) and self.may_go(state, self.roles[role][place]):
                yield self.gone(state, role)
        for barrier in {flight.fill.barrier for flight in state.flying}:
            yield self.landed(state, barrier)

    def may_go(self, state: _State, segment: Segment) -> bool:
        match segment.events[:1]:
            case (Wait(barrier=barrier, parity=parity),):
                return (state.barriers[self.index[barrier]][0] + 1) % 2 == parity
            case (Meet(barrier=barrier, phase=phase),):
                return state.barriers[self.index[barrier]][0] > phase
        return True

    def gone(self, state: _State, role: int) -> _State:
        """Return the state after a segment of a role."""
        place = state.places[role]
        segment = self.roles[role][place]
        places = (*state.places[:role], place + 1, *state.places[role + 1 :])
        self.check_apart(state, role, segment)
        barriers = list(state.barriers)
        for event in segment.events:
            if isinstance(event, Arrive):
                self.arrive(barriers, event)
        flying = state.flying | segment.flights
        parts = self.parts_after(state, role, segment)
        return _State(places, tuple(barriers), flying, parts)

    def parts_after(self, state: _State, role: int, segment: Segment) -> frozenset[Part]:
        """Return what tiles hold after a segment, which finds in them what is meant."""
        puts = [event for event in segment.events if isinstance(event, (Fill, Write))]
        if not puts and not segment.reads:
            return state.parts
        tiles: dict[Tile, list[tuple[Box, Content]]] = {}
        for tile, box, content in state.parts:
            tiles.setdefault(tile, []).append((box, content))
        for event in puts:
            put(tiles.setdefault(event.tile, []), event.box, event.content)
        for read in segment.reads:
            held = held_in(tiles.get(read.tile, ()), read.box)
            check_meant(read, held, self.program.held(read))
        if not puts:
            return state.parts
        return frozenset((tile, *part) for tile, known in tiles.items() for part in known)

    def check_apart(self, state: _State, role: int, segment: Segment) -> None:
        """Make sure that nothing else goes on that a segment disturbs."""
        at = role, state.places[role]
        beside = [((*at, f.role, f.number, True), f.touches) for f in state.flying]
        beside += [
            ((*at, other, place, False), self.roles[other][place - 1].touches)
            for other, place in enumerate(state.places)
            if other != role and place
        ]
        begun = [use for flight in segment.flights for use in flight.touches]
        for pair, touches in beside:
            if pair not in self.apart:
                clash((*segment.touches, *begun), touches)
                self.apart.add(pair)

    def arrive(self, barriers: list[Phase], event: Arrive) -> None:
        at = self.index[event.barrier]
        completed, needed, expected = barriers[at]
        if event.count > needed:
            name = shown(event.barrier)
            raise ProtocolBroken(f"{name} is arrived at too often in one phase", event.span)
        phase = (completed, needed - event.count, expected + event.nbytes)
        barriers[at] = self.settled(event.barrier, phase, event.span)

    def settled(self, barrier: BarrierId, phase: Phase, span: Span | None) -> Phase:
        completed, needed, expected = phase
        if needed == 0 and expected < 0:
            raise ProtocolBroken(f"{shown(barrier)} hears of bytes that nobody expects", span)
        if needed or expected:
            return phase
        return completed + 1, self.program.arrivals[barrier], 0

    def landed(self, state: _State, barrier: BarrierId) -> _State:
        """Return the state in which a barrier has heard of all that is on its way to it."""
        ended = {flight for flight in state.flying if flight.fill.barrier == barrier}
        at = self.index[barrier]
        completed, needed, expected = state.barriers[at]
        for flight in ended:
            expected -= flight.fill.nbytes
            if expected < 0 and flight.rank == barrier[2]:
                name = shown(barrier)
                raise ProtocolBroken(f"{name} hears of bytes that nobody expects", flight.fill.span)
        span = next(iter(ended)).fill.span
        phase = self.settled(barrier, (completed, needed, expected), span)
        barriers = (*state.barriers[:at], phase, *state.barriers[at + 1 :])
        return _State(state.places, barriers, state.flying - ended, state.parts)

    def told(self, state: _State) -> Iterator[str]:
        """Yield what everybody was about to do."""
        for role, place, parts in zip(self.program.roles, state.places, self.roles, strict=True):
            events: tuple[Event, ...] = parts[place].events if place < len(parts) else ()
            line = "".join(f"line {e.span.line}: " for e in events[:1] if e.span is not None)
            yield f"{role.name}: {line}{events[0] if events else 'done'}"
        for name, (completed, needed, expected) in zip(self.names, state.barriers, strict=True):
            yield (
                f"{shown(name)}: {completed} phases over, {needed} arrivals and {expected} "
                "bytes missing"
            )
