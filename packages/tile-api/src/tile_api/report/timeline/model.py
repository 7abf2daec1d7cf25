"""A pipeline as lanes with bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tile_api.report.place import SourceLine

Activity: TypeAlias = Literal["issue", "transfer", "product", "work", "wait", "use"]
"""Beginning something, bytes in flight, a product, what else threads do, waiting, being read."""


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that goes on for a while.

    Parameters
    ----------
    lane
        The number of its lane in `Timeline.lanes`.
    start, end
        In units of the picture, which are no measured times.
    number
        The round: how often the same statement was run before.
    text
        The statement.
    at
        Where the user wrote it.
    """

    lane: int
    activity: Activity
    start: float
    end: float
    number: int
    text: str
    at: SourceLine | None


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the picture.

    Parameters
    ----------
    kind
        ``"threads"`` of one role, a ``"unit"`` that works beside them, or a ``"tile"`` that copies
        fill and threads read.
    """

    name: str
    kind: Literal["threads", "unit", "tile"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the threads of one block do, and what is in flight meanwhile.

    Parameters
    ----------
    notes
        What was assumed, and what is not drawn.
    """

    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()

    @property
    def length(self) -> float:
        """When the last bar ends."""
        return max((bar.end for bar in self.bars), default=0.0)
