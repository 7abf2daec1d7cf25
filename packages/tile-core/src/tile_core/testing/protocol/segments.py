"""What a role does from one wait or arrival to the next, and what of it disturbs others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tile_core.errors import Span
from tile_core.testing.protocol.events import (
    COPIES,
    Arrive,
    Box,
    Event,
    Fill,
    Meet,
    ProtocolBroken,
    Read,
    Role,
    Settle,
    Tile,
    Wait,
    Write,
    named,
    overlaps,
)


@dataclass(frozen=True, slots=True)
class Use:
    """That a role is at a box of a tile, by itself or by an engine."""

    role: int
    scope: tuple[int, int]
    tile: Tile
    box: Box
    writes: bool
    by_engine: bool
    span: Span | None


@dataclass(frozen=True, slots=True)
class Flight:
    """A fill that has begun: the `number`-th event of a role of this block."""

    role: int
    number: int
    rank: int
    fill: Fill
    touches: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """One wait or arrival, and what follows it up to the next."""

    events: tuple[Event, ...]
    # What the role is at until its next segment begins, that of its products included.
    touches: tuple[Use, ...]
    reads: tuple[Read, ...]
    # The fills that begin; they go on until their barrier has heard of them.
    flights: frozenset[Flight]

    @property
    def span(self) -> Span | None:
        """The user's line of what it waits for."""
        return self.events[0].span if self.events else None


def segments_of(number: int, role: Role) -> tuple[Segment, ...]:
    """Return the segments of a role; the first one begins without a wait."""
    found: list[Segment] = []
    lasting: dict[tuple[str, int], list[Use]] = {}
    for first, events in _cut(role.events):
        touches: list[Use] = [use for uses in lasting.values() for use in uses]
        flights = set()
        for place, event in enumerate(events, first):
            over = _over(event)
            if over is not None:
                for key in [k for k in lasting if k[0] == over[0] and k[1] < over[1]]:
                    del lasting[key]
            for use in _uses(number, role, event):
                clash([use], [u for uses in lasting.values() for u in uses])
                if isinstance(event, (Read, Write)) and event.lasts is not None:
                    engine = event.engine if isinstance(event, Read) else COPIES
                    lasting.setdefault((engine, event.lasts), []).append(use)
                if not isinstance(event, Fill):
                    touches.append(use)
            if isinstance(event, Fill):
                uses = tuple(_uses(number, role, event))
                flights.add(Flight(number, place, role.rank, event, uses))
        reads = tuple(e for e in events if isinstance(e, Read))
        found.append(Segment(events, tuple(dict.fromkeys(touches)), reads, frozenset(flights)))
    return tuple(found)


def _over(event: Event) -> tuple[str, int] | None:
    """Return what an event ends: how many of what an engine does.

    Whoever waits for an arrival of copies goes on when they are complete: it ends them here.
    """
    match event:
        case Settle(engine=engine, begun=begun, pending=pending):
            return engine, begun - pending
        case Arrive(copies=int(copies)):
            return COPIES, copies
    return None


def _cut(events: tuple[Event, ...]) -> Iterator[tuple[int, tuple[Event, ...]]]:
    """Yield the events of each segment, and where it begins."""
    starts = [0]
    for place, event in enumerate(events):
        waits = isinstance(event, (Wait, Meet)) or (isinstance(event, Arrive) and event.count > 0)
        if waits:
            starts.append(place)
    for first, last in zip(starts, (*starts[1:], len(events)), strict=True):
        yield first, events[first:last]


def _uses(number: int, role: Role, event: Event) -> Iterator[Use]:
    match event:
        case Fill(tile=tile, box=box):
            yield Use(number, role.scope, tile, box, True, True, event.span)
            if event.source is not None:
                yield Use(number, role.scope, *event.source, False, True, event.span)
        case Write(tile=tile, box=box):
            yield Use(number, role.scope, tile, box, True, False, event.span)
        case Read(tile=tile, box=box):
            yield Use(number, role.scope, tile, box, False, event.by_engine, event.span)


def clash(mine: Iterable[Use], others: Iterable[Use]) -> None:
    """Make sure that accesses may go on at the same time.

    Raises `ProtocolBroken` if two of them disturb each other.
    """
    theirs = list(others)
    for use in mine:
        for other in theirs:
            if use.tile != other.tile or not (use.writes or other.writes):
                continue
            apart = use.by_engine or other.by_engine or use.scope != other.scope
            if apart and overlaps(use.box, other.box):
                name, does = named(use.tile, use.box), "filled" if use.writes else "read"
                raise ProtocolBroken(f"{name} is {does} while {_doing(other)}", use.span)


def _doing(other: Use) -> str:
    if other.by_engine:
        return "a fill is in flight" if other.writes else "an engine reads it"
    return f"others {'write' if other.writes else 'read'} it"
