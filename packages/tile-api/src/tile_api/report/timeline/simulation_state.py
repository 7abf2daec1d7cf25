"""What is acted on: roles with their clocks, lanes, and bars as they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tile_api.report.model import Activity
from tile_api.report.timeline.barriers import Meeting, PhaseBarrier
from tile_api.report.timeline.values import Values
from tile_core.errors import Span
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import Node

MOST_BARS = 6000
"""Programs are acted out until there are so many bars."""

LaneKey: TypeAlias = "tuple[str, str, int]"
"""Kind, name and number: threads by their first one, tiles by their version."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A bar whose lane has no number yet."""

    lane: LaneKey
    activity: Activity
    start: float
    end: float
    number: int
    text: str
    span: Span | None


@dataclass(slots=True)
class Actor:
    """A range of threads that runs one program; `threads` of them run the statement at hand.

    `begun` and `groups` are when copies that it began end: those of the open group, and of each
    closed one; `products` and `stores` when what it left in flight ends; `loads` when what is
    loaded into registers is there.
    """

    name: str
    first: int
    threads: int
    values: Values
    time: float = 0.0
    begun: float = 0.0
    groups: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)
    stores: list[float] = field(default_factory=list)
    loads: dict[Buffer, float] = field(default_factory=dict)

    @property
    def lane(self) -> LaneKey:
        """Where its own bars are."""
        return ("threads", self.name, self.first)

    @property
    def unit(self) -> LaneKey:
        """Where products are that run beside it."""
        return ("unit", self.name, self.first)


def actor_of(first: int, threads: int, values: Values, time: float = 0.0) -> Actor:
    """Return threads that begin at `time`."""
    return Actor(f"threads {first} to {first + threads - 1}", first, threads, values, time)


class EnoughError(Exception):
    """There are as many bars as can be looked at."""


@dataclass(slots=True)
class Stage:
    """One block, while its program is acted out."""

    warp_size: int
    bars: list[Drawn] = field(default_factory=list)
    barriers: dict[tuple[Buffer, int], PhaseBarrier] = field(default_factory=dict)
    counts: dict[Buffer, tuple[int, ...]] = field(default_factory=dict)
    meetings: dict[int, Meeting] = field(default_factory=dict)
    filled: set[Buffer] = field(default_factory=set)
    iterations: dict[object, int] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def draw(
        self,
        lane: LaneKey,
        activity: Activity,
        times: tuple[float, float],
        number: int,
        node: Node,
        text: str,
    ) -> None:
        """Add a bar.

        Raises
        ------
        EnoughError
            If there are too many.
        """
        if len(self.bars) >= MOST_BARS:
            raise EnoughError
        self.bars.append(Drawn(lane, activity, *times, number, text, node.span))

    def iteration_of(self, key: object) -> int:
        """Return how often this was asked for `key` before."""
        number = self.iterations.get(key, 0)
        self.iterations[key] = number + 1
        return number

    def barrier(self, buffer: Buffer, index: int) -> PhaseBarrier:
        """Return a barrier of a buffer of barriers, made at first use."""
        key = (buffer.storage, index)
        if key not in self.barriers:
            counts = self.counts.get(buffer.storage, ())
            needed = counts[index] if index < len(counts) else 1
            self.barriers[key] = PhaseBarrier(needed)
        return self.barriers[key]
