"""A pipeline as lanes with bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tile_api.report.model import Place

Activity = Literal["issue", "transfer", "product", "work", "wait"]
"""Beginning a copy, bytes under way, a product, anything else that threads do, and waiting."""


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
        How often the same statement was run before; -1 where that says nothing.
    text
        The statement.
    """

    lane: int
    activity: Activity
    start: float
    end: float
    number: int
    text: str
    at: Place | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """What the threads of one block do, and what is under way meanwhile.

    Parameters
    ----------
    lanes
        Roles of threads, and who moves bytes beside them.
    left_out
        How many bars were not drawn, as the picture would not end.
    notes
        What was assumed.
    """

    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    left_out: int
    notes: tuple[str, ...]
