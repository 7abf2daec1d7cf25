"""Programs that passes left, as lines that know their places, and what each pass changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from tile_api.report.model import Line, PassStep, Row
from tile_api.report.source_lines import SourceLines
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import kernel_lines, stmt_lines
from tile_core.ir.stmt import Alloc, Kernel, Launch, Stmt
from tile_core.pass_manager.instrumentation import Snapshot

_REWRITTEN = 0.2
"""Programs that share less than this part of their lines are not compared."""

INFERENCE = "infer_layouts"


def lines_of(
    program: Kernel | Stmt, places: SourceLines, aside: Callable[[Node], str] | None = None
) -> list[Line]:
    """Return the printed program.

    Statements that do not know their place have that of the line above: lowering writes what
    belongs to one line of the user in one piece. `aside` tells what else is known of a statement.
    """
    printed = kernel_lines(program) if isinstance(program, Kernel) else stmt_lines(program)
    lines: list[Line] = []
    at = None
    for text, node in printed:
        at = places.at(node.span) or at
        told = "" if aside is None or text.lstrip().startswith("view ") else aside(node)
        lines.append(Line(text, at, told))
    return lines


def steps_of(
    kernel: Kernel, snapshots: Iterable[Snapshot], layouts: Any, places: SourceLines
) -> tuple[PassStep, ...]:
    """Return the program after each pass, compared with the program before it.

    The layouts that inference found are shown at the tiles and loops of the last program on which
    it ran.
    """
    before = {0: lines_of(kernel, places)}
    steps = [PassStep("trace", "The program as Python described it.", 0, "rewritten",
                  whole(before[0]), 0.0)]  # fmt: skip
    last = kernel
    inferred = layouts is None
    for shot in snapshots:
        if shot.launch and not inferred:
            steps += _inferred(last, layouts, places)
            inferred = True
        if shot.launch not in before:
            launch = [n for n in walk(last.body) if isinstance(n, Launch)][shot.launch - 1]
            before[shot.launch] = lines_of(launch, places)
        lines = lines_of(shot.program, places)
        steps.append(_step(shot, before[shot.launch], lines))
        before[shot.launch] = lines
        last = shot.program if isinstance(shot.program, Kernel) else last
    if not inferred:
        steps += _inferred(last, layouts, places)
    return tuple(steps)


def _step(shot: Snapshot, before: Sequence[Line], after: Sequence[Line]) -> PassStep:
    told = (shot.name, shot.summary, shot.launch)
    if [x.text for x in before] == [x.text for x in after]:
        return PassStep(*told, "same", (), shot.milliseconds)
    rows = compared(before, after)
    kept = sum(row.change == "same" for row in rows)
    if kept < _REWRITTEN * min(len(before), len(after)):
        return PassStep(*told, "rewritten", whole(after), shot.milliseconds)
    return PassStep(*told, "changed", rows, shot.milliseconds)


def _inferred(kernel: Kernel, layouts: Any, places: SourceLines) -> list[PassStep]:
    """Return the program with what inference found at each tile and loop, if anything."""
    report = layouts.report()
    tiles: Mapping[Any, Any] = {tile.buffer: tile for tile in report.tiles}

    def aside(node: Node) -> str:
        if isinstance(node, Alloc):
            tile = tiles.get(node.buffer)
            return "" if tile is None else f"{tile.layout!r}, by {tile.reason.who}"
        order = getattr(layouts, "loops", {}).get(node)
        if order is None:
            return ""
        return f"{order.rounds} iterations of {order.vector}, {order.fragment!r}"

    lines = lines_of(kernel, places, aside)
    if not any(line.aside for line in lines):
        return []
    return [PassStep(INFERENCE, _INFERS, 0, "annotated", whole(lines), 0.0)]


_INFERS = "Decide how each tile is stored and which thread runs each iteration of parallel loops."


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
