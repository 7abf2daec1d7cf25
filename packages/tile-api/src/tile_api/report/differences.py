"""Differences between two texts of a program: by lines, and within lines that stayed similar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from tile_api.report.model import Line, Row

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_SIMILAR = 0.5
"""Lines that share less than this part of their words are two lines, not one that changed."""


def compared(old: Sequence[Line], new: Sequence[Line]) -> tuple[Row, ...]:
    """Return both texts as one: lines that stayed, that went, and that came, in reading order."""
    matcher = SequenceMatcher(None, [x.text for x in old], [x.text for x in new], autojunk=False)
    rows: list[Row] = []
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            rows += [Row("same", new[c + k], a + k + 1, c + k + 1) for k in range(b - a)]
        else:
            rows += _replaced(old[a:b], new[c:d], a, c)
    return tuple(rows)


def whole(lines: Sequence[Line]) -> tuple[Row, ...]:
    """Return a text that is compared with nothing."""
    return tuple(Row("same", line, number, number) for number, line in enumerate(lines, 1))


def _replaced(old: Sequence[Line], new: Sequence[Line], a: int, c: int) -> Iterator[Row]:
    """Yield what went, then what came; lines of the same rank may be one line that changed."""
    pairs = {}
    if len(old) == len(new):
        pairs = {k: _marks(x.text, y.text) for k, (x, y) in enumerate(zip(old, new, strict=True))}
    for k, line in enumerate(old):
        yield Row("gone", line, a + k + 1, 0, pairs[k][0] if k in pairs else ())
    for k, line in enumerate(new):
        yield Row("new", line, 0, c + k + 1, pairs[k][1] if k in pairs else ())


Marks = tuple[tuple[int, int], ...]


def _marks(old: str, new: str) -> tuple[Marks, Marks]:
    """Return where two lines differ; nothing if they have little in common."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _SIMILAR:
        return (), ()
    gone, came = [], []
    for what, a, b, c, d in matcher.get_opcodes():
        if what != "equal":
            gone.append(_extent(before, a, b))
            came.append(_extent(after, c, d))
    return tuple(g for g in gone if g[0] < g[1]), tuple(g for g in came if g[0] < g[1])


def _extent(words: Sequence[str], begin: int, end: int) -> tuple[int, int]:
    start = sum(map(len, words[:begin]))
    return start, start + sum(map(len, words[begin:end]))
