"""Phases and passes with their times, as a tree written flat."""

from __future__ import annotations

from collections.abc import Iterable

from tile_api.report.model import Duration
from tile_core.recording import Event


def durations_of(events: Iterable[Event]) -> tuple[Duration, ...]:
    """Return what happened in one thread, in the order of its beginning, parts after wholes."""
    ordered = sorted(events, key=lambda e: (e.start, -e.end))
    if not ordered:
        return ()
    zero = ordered[0].start
    under_way: list[Event] = []
    found = []
    for event in ordered:
        while under_way and under_way[-1].end <= event.start:
            under_way.pop()
        start = (event.start - zero) * 1e3
        depth = len(under_way)
        found.append(Duration(event.name, event.category, start, event.milliseconds, depth))
        under_way.append(event)
    return tuple(found)
