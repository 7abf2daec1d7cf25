"""What groups of threads do to barriers and tiles, in all blocks of a cluster, as lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tile_core.errors import Span

BarrierId: TypeAlias = tuple[str, int, int]
"""A barrier: its buffer's name, which of them, and the rank of its block."""

Tile: TypeAlias = tuple[str, int]
"""A shared tile: its name, and the rank of its block."""

Box: TypeAlias = tuple[tuple[int, int], ...]
"""Elements of a tile: from where to where, the end excluded, along each dimension."""

Content: TypeAlias = tuple[object, ...]
"""What tells contents of tiles apart: where in a tensor they come from, or who made them."""

PRODUCTS, STORES, COPIES = "products", "stores", "copies"
"""What goes on beside threads, in order, until these wait for it: the last are copies that they
began themselves, into tiles."""


Statement: TypeAlias = tuple[object, str, object]
"""What tells readings of the user apart: line and kind of a statement, and which of its operands.

Tiles do not: a compiler may give a statement other ones.
"""


@dataclass(frozen=True, slots=True)
class ExpectedContent:
    """What a statement of the sequential program finds where it reads."""

    contents: frozenset[Content]  # all that is in the box
    is_whole: bool  # whether each element has been written


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that threads do; `span` is the user's line."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Init(Event):
    """Make the barriers of a buffer ready, for a block."""

    barriers: str
    rank: int


@dataclass(frozen=True, slots=True)
class Wait(Event):
    """Wait until the last phase of a barrier that completed has this parity."""

    barrier: BarrierId
    parity: int


@dataclass(frozen=True, slots=True)
class Arrive(Event):
    """Arrive at a barrier `count` times, and let its phase wait for `nbytes` too.

    An arrival that is `relaxed` tells nobody of what these threads did before. One of `copies`
    comes when as many copies that they began are complete, and tells of these alone.
    """

    barrier: BarrierId
    count: int
    nbytes: int = 0
    relaxed: bool = False
    copies: int | None = None


@dataclass(frozen=True, slots=True)
class Meet(Event):
    """Wait until the phase of a barrier that these threads arrived at last is over."""

    barrier: BarrierId
    phase: int


@dataclass(frozen=True, slots=True)
class Fill(Event):
    """Let the copy engine copy `nbytes` into a tile; a barrier of its block hears of them later.

    Where they come from another tile, `source`, this one is read until then.
    """

    tile: Tile
    box: Box
    barrier: BarrierId
    nbytes: int
    content: Content
    source: tuple[Tile, Box] | None = None


@dataclass(frozen=True, slots=True)
class Write(Event):
    """Write a tile: by stores, which are there at once, or by copies that the threads begin."""

    tile: Tile
    box: Box
    content: Content
    # Which of the copies that these threads began it is; None if it is over at once.
    lasts: int | None = None
    team: tuple[int, int] | None = None  # first and count of the threads that share the work out


@dataclass(frozen=True, slots=True)
class Read(Event):
    """Read a tile."""

    tile: Tile
    box: Box
    # The reading goes on by an engine, as number `lasts` of what it does for these threads, until
    # they wait for it; None if it is over at once.
    lasts: int | None = None
    by_engine: bool = False  # the copy engine does not see stores that were not fenced
    engine: str = PRODUCTS  # which list `lasts` counts in
    # statement, turn: which statement of the user reads, and how often these threads have run it
    # before.
    statement: Statement | None = None
    turn: int = 0
    # What this run of the statement writes to the same tile, element by element: other warps of the
    # range may have done so already to their elements.
    own: Content | None = None
    team: tuple[int, int] | None = None  # first and count of the threads that share the work out


@dataclass(frozen=True, slots=True)
class Settle(Event):
    """Wait until at most the last `pending` of `begun` things that an engine does go on."""

    engine: str
    begun: int
    pending: int


@dataclass(frozen=True, slots=True)
class Fence(Event):
    """Let engines see what these threads stored."""


@dataclass(frozen=True, slots=True)
class Role:
    """Threads that run one program together."""

    name: str  # which they are, for reports
    rank: int  # their block
    # The range of threads that they belong to: what orders it inside is not looked at here.
    scope: tuple[int, int]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What the threads of the blocks of a cluster do."""

    roles: tuple[Role, ...]
    arrivals: Mapping[BarrierId, int]  # how many arrivals complete a phase of each barrier
    # What each execution of a statement by a block finds, if that is known.
    meant: Mapping[tuple[int, Statement], Sequence[ExpectedContent]] = field(default_factory=dict)

    def held(self, read: Read) -> ExpectedContent | None:
        """Return what a reading of a block's tile must find, None if nobody says."""
        known = self.meant.get((read.tile[1], read.statement), ()) if read.statement else ()
        found = known[read.turn] if read.turn < len(known) else None
        return found if found is not None and found.contents else None


@dataclass(frozen=True, slots=True)
class Violation:
    """What goes wrong, where in the user's program, and what everybody was about to do then."""

    what: str
    span: Span | None
    roles: tuple[str, ...]

    def __str__(self) -> str:
        where = () if self.span is None else (self.span.render(),)
        return "\n  ".join((self.what, *where, *self.roles))


class ProtocolBroken(Exception):
    """A rule is broken, by who stands at the user's line `span`."""

    def __init__(self, what: str, span: Span | None = None) -> None:
        super().__init__(what)
        self.what, self.span = what, span


def overlaps(a: Box, b: Box) -> bool:
    """Whether two boxes of a tile have elements in common."""
    for (start, end), (other, its_end) in zip(a, b, strict=True):
        if start >= its_end or other >= end:
            return False
    return True


def covers(a: Box, b: Box) -> bool:
    """Whether the first box holds all of the second."""
    return all(x[0] <= y[0] and y[1] <= x[1] for x, y in zip(a, b, strict=True))


def shown(place: BarrierId) -> str:
    """Return a barrier as messages name it."""
    name, number, rank = place
    return f"{name}[{number}]" + (f" of block {rank}" if rank else "")


def named(tile: Tile, box: Box) -> str:
    """Return a tile as messages name it, with the first index of the box."""
    name, rank = tile
    return f"{name}[{box[0][0]}]" + (f" of block {rank}" if rank else "")


def check_meant(read: Read, held: ExpectedContent, meant: ExpectedContent | None) -> None:
    """Make sure that a reading finds what it is meant to find.

    Raises `ProtocolBroken` if it does not.
    """
    if meant is None or (held.contents == meant.contents and held.is_whole >= meant.is_whole):
        return
    others = held.contents - {read.own}
    if read.own in held.contents and others <= meant.contents and held.is_whole >= meant.is_whole:
        return
    tile = named(read.tile, read.box)
    what = f"holds {_listed(held)} where {_listed(meant)} is meant"
    if held.contents == meant.contents:
        what = f"is filled in part where {_listed(meant)} is meant"
    raise ProtocolBroken(f"{tile} {what}", read.span)


def _listed(held: ExpectedContent) -> str:
    told = {
        f"{c[0]}[{', '.join(map(str, c[1:]))}]" if isinstance(c[0], str) else "what threads wrote"
        for c in held.contents
    }
    return " and ".join(sorted(told)) or "nothing"
