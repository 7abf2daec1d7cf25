"""Accesses of tiles, which barriers must put in an order, and what they find."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tile_core.errors import Span
from tile_core.testing.protocol.events import (
    Box,
    Content,
    Event,
    ExpectedContent,
    Fill,
    ProtocolBroken,
    Read,
    Tile,
    Write,
    covers,
    named,
    overlaps,
)
from tile_core.testing.protocol.vector_clocks import Clock, Known


@dataclass(frozen=True, slots=True)
class TileAccess:
    """An access of a tile."""

    # role, scope: who, and of which range of threads: threads of one are ordered by its own
    # barriers.
    role: int
    scope: tuple[int, int]
    writes: bool
    by_engine: bool
    # ends, fence: what others must know before they do what conflicts with it; and, for stores,
    # before an engine reads them.
    ends: Known
    fence: Known
    event: Event
    is_late: bool = False  # whether it goes on beside those who began it

    @property
    def span(self) -> Span | None:
        """The user's line."""
        return self.event.span


@dataclass(slots=True)
class Tiles:
    """All tiles of all blocks: who may still be at them, and what they hold."""

    touches: dict[Tile, dict[object, tuple[Box, TileAccess]]] = field(default_factory=dict)
    parts: dict[Tile, list[tuple[Box, Content]]] = field(default_factory=dict)

    def write(
        self, tile: Tile, box: Box, touch: TileAccess, content: Content, clock: Clock
    ) -> None:
        """Note a write of a box, by somebody who knows `clock`."""
        self._enter(tile, box, touch, clock)
        put(self.parts.setdefault(tile, []), box, content)

    def read(self, tile: Tile, box: Box, touch: TileAccess, clock: Clock) -> ExpectedContent:
        """Note a reading of a box, and return what is there."""
        self._enter(tile, box, touch, clock)
        return held_in(self.parts.get(tile, ()), box)

    def _enter(self, tile: Tile, box: Box, touch: TileAccess, clock: Clock) -> None:
        known = self.touches.setdefault(tile, {})
        gone = []
        for key, (there, other) in known.items():
            if not overlaps(there, box) or not (other.writes or touch.writes):
                continue
            ordered = other.ends.is_in(clock)
            late = other.is_late and not _of_one_copy(touch, other)
            beside = touch.by_engine or other.by_engine or late
            apart = beside or not _of_one_range(touch, other)
            if apart and not ordered:
                raise ProtocolBroken(_conflict(tile, box, other, touch), touch.span)
            unseen = touch.by_engine and not touch.writes and other.writes and not other.by_engine
            if unseen and not other.fence.is_in(clock):
                raise ProtocolBroken(
                    f"an asynchronous operation reads {named(tile, box)}, which was stored "
                    f"without a fence",
                    other.span,
                )
            if ordered and touch.writes and covers(box, there):
                gone.append(key)
        for key in gone:
            del known[key]
        known[touch.role, touch.ends.at, touch.writes, box] = (box, touch)

    def going_on(self, role: int) -> Iterator[tuple[Known, Span | None]]:
        """Yield when readings by engines for a role end."""
        for touches in self.touches.values():
            for _, touch in touches.values():
                if touch.role == role and touch.by_engine and isinstance(touch.event, Read):
                    yield touch.ends, touch.span


def _of_one_range(a: TileAccess, b: TileAccess) -> bool:
    """Whether threads of one range do both, which barriers of the range order."""
    if a.scope == b.scope:
        return True
    if not isinstance(a.event, (Read, Write)) or not isinstance(b.event, (Read, Write)):
        return False
    return a.scope[0] == b.scope[0] and a.event.team is not None and a.event.team == b.event.team


def _of_one_copy(a: TileAccess, b: TileAccess) -> bool:
    """Whether threads of one range make a copy together: each brings elements of its own."""
    if a.scope != b.scope or not isinstance(a.event, Write) or not isinstance(b.event, Write):
        return False
    return a.event.content == b.event.content


def _conflict(tile: Tile, box: Box, other: TileAccess, touch: TileAccess) -> str:
    name = named(tile, box)
    does = "is filled" if touch.writes else "is read"
    if other.writes and (other.is_late or isinstance(other.event, Fill)):
        return f"{name} {does} while a fill is in flight"
    if other.by_engine:
        return f"{name} {does} while an asynchronous operation reads it"
    return f"{name} {does} while others {'write' if other.writes else 'read'} it"


def put(parts: list[tuple[Box, Content]], box: Box, content: Content) -> None:
    """Let a box of a tile have other contents."""
    parts[:] = [part for part in parts if not covers(box, part[0])]
    parts.append((box, content))


def held_in(parts: Sequence[tuple[Box, Content]], box: Box) -> ExpectedContent:
    """Return what is in a box of a tile."""
    inside = [part for part in parts if overlaps(part[0], box)]
    size = sum(_volume(_common(part[0], box)) for part in inside)
    return ExpectedContent(frozenset(content for _, content in inside), size >= _volume(box))


def _common(a: Box, b: Box) -> Box:
    return tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))


def _volume(box: Box) -> int:
    return math.prod(last - first for first, last in box)
