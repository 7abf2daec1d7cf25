"""Lines of the user: which a report shows, and how its parts refer to them."""

from __future__ import annotations

import ast
import linecache
from pathlib import Path

from tile_api.report.model import Source, SourceLine
from tile_core.errors import Span

_AROUND = 3
"""Lines shown before and after those that are referred to, where no function encloses them."""


class SourceLines:
    """Files and lines that a report refers to: the kernel's own file, then as they come up."""

    def __init__(self, first: Span | None) -> None:
        self._used: dict[str, set[int]] = {}
        self._numbers: dict[str, int] = {}
        if first is not None:
            self.at(first)

    def at(self, span: Span | None) -> SourceLine | None:
        """Return how to refer to the line of `span`; None if its text is not to be had."""
        if span is None:
            return None
        if span.file not in self._numbers:
            if not linecache.getline(span.file, span.line):
                return None
            self._numbers[span.file] = len(self._numbers)
            self._used[span.file] = set()
        self._used[span.file].add(span.line)
        return SourceLine(self._numbers[span.file], span.line)

    def known(self, file: str, line: int) -> SourceLine | None:
        """Return how to refer to a line, if its file came up before."""
        number = self._numbers.get(file)
        if number is None or line < 1:
            return None
        self._used[file].add(line)
        return SourceLine(number, line)

    def sources(self) -> tuple[Source, ...]:
        """Return, of each file, the functions around all lines that were referred to."""
        return tuple(_source(file, lines) for file, lines in self._used.items())


def _source(file: str, used: set[int]) -> Source:
    lines = linecache.getlines(file)
    first, last = min(used), max(used)
    try:
        functions = [n for n in ast.parse("".join(lines)).body if isinstance(n, _DEFINITIONS)]
    except SyntaxError:
        functions = []
    around = [f for f in functions if any(_begin(f) <= k <= (f.end_lineno or 0) for k in used)]
    if around:
        first = min(first, *(_begin(f) for f in around))
        last = max(last, *(f.end_lineno or 0 for f in around))
    else:
        first, last = max(1, first - _AROUND), min(len(lines), last + _AROUND)
    return Source(Path(file).name, first, tuple(x.rstrip("\n") for x in lines[first - 1 : last]))


_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def _begin(node: ast.FunctionDef | ast.ClassDef) -> int:
    return min(node.lineno, *(d.lineno for d in node.decorator_list), node.lineno)
