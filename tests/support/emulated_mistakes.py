"""Programs broken in one place, and what the emulator must say of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from support.emulated import Change, Program, line_of
from tile_core.errors import TileError
from tile_sim import checking

SCHEDULES = ("forward", "reverse", "random:1", "random:2", "random:3")


@dataclass(frozen=True)
class Mistake:
    """A change that breaks a program, what finds it, and in which line; `other` is noted."""

    program: Program
    change: Change
    check: str
    error: type[TileError] | tuple[type[TileError], ...]
    line: str
    other: str = ""

    def must_be_found(self, schedule: str, async_mode: str = "late") -> TileError:
        """Run the broken program, and compare the error, its line and those of its notes.

        Which of several findings comes first depends on the schedule; forward it is the one
        that is written down.
        """
        file = self.program.file
        settings = checking(self.check, schedule=schedule, async_mode=async_mode, threads=1)
        with settings, pytest.raises(TileError) as caught:
            self.program.run(self.change)
        error = caught.value
        assert isinstance(error, self.error), str(error)
        lines = {error.span.line, *(n.span.line for n in error.notes if n.span is not None)}
        expected = {line_of(file, marker) for marker in (self.line, self.other) if marker}
        assert error.span.file == file
        assert line_of(file, self.line) in lines, str(error)
        if schedule == "forward":
            assert error.span.line in expected, str(error)
            assert expected <= lines, str(error)
        return error
