"""A line of the user, as reports refer to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class SourceLine:
    """A line of the user: the number of its file in `Report.sources`, and of the line there."""

    file: int
    line: int
