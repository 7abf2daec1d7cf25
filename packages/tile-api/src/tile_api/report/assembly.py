"""Assembly that knows the user's lines: what compilers say in ``.loc`` directives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tile_api.report.model import Line, SourceLine
from tile_api.report.source_lines import SourceLines

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")

_PRINTED = ("kernel.cu", "kernel.hip")
"""What compilers call the text that they are given."""

_Where = tuple[str, str, str]
"""File, line and column, by their numbers."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Files by their numbers, and how to refer to lines of those that are of interest."""

    files: Mapping[str, str]
    places: SourceLines
    source: Sequence[Line]

    def place(self, where: _Where) -> SourceLine | None:
        path, row = self.files.get(where[0], ""), int(where[1])
        if PurePath(path).name in _PRINTED and 1 <= row <= len(self.source):
            return self.source[row - 1].at
        return self.places.known(path, row)


def lines_of_assembly(text: str, places: SourceLines, source: Sequence[Line] = ()) -> list[Line]:
    """Return the lines of a text of assembly.

    Where code came out of a function of a header, the line of the user is the one that the function
    was called from, through however many others. `source` is the text that was compiled, which
    compilers know under a name of their own.

    Notes
    -----
    Source: PTX ISA, "Debugging Directives: .loc", ``inlined_at``.
    """
    raw = text.rstrip("\n").split("\n")
    files = {number: path for line in raw for number, path in _files(line)}
    callers: dict[_Where, _Where] = {}
    at: SourceLine | None = None
    lines = []
    for line in raw:
        if (found := _LOC.match(line)) is not None:
            file, row, column, *caller = found.groups()
            where = (file, row, column)
            if caller[0]:
                callers[where] = (caller[0], caller[1], caller[2])
            else:
                callers.pop(where, None)
            at = _user_place(where, callers, _Known(files, places, source))
        elif line.startswith(".") or line == "}":  # between functions
            at = None
        lines.append(Line(line, at))
    return lines


def _files(line: str) -> Iterator[tuple[str, str]]:
    found = _FILE.match(line)
    if found is not None:
        folder, name = (found.group(2), found.group(3)) if found.group(3) else ("", found.group(2))
        yield found.group(1), f"{folder}/{name}" if folder else name


def _user_place(
    where: _Where, callers: Mapping[_Where, _Where], known: _Known
) -> SourceLine | None:
    seen: set[_Where] = set()
    while where not in seen:
        seen.add(where)
        at = known.place(where)
        if at is not None or where not in callers:
            return at
        where = callers[where]
    return None
