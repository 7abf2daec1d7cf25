"""Programs as HTML: numbered lines with links to the user's, and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tile_api.report.markup import Html, element, joined
from tile_api.report.model import Line, Row, SourceLine

_CONTEXT = 3
"""Unchanged lines that are shown around changed ones."""

_SIGNS = {"same": " ", "new": "+", "gone": "\N{MINUS SIGN}"}
_WORDS = {"new": "added: ", "gone": "removed: "}


def listing(label: str, rows: Iterable[Html]) -> Html:
    """Return a box with code, which scrolls by itself and can be reached from the keyboard."""
    return element("div", *rows, class_="code", role="region", tabindex=0, aria_label=label)


def anchor_of(place: SourceLine) -> str:
    """Return the identifier of a line of the user."""
    return f"s{place.file}-{place.line}"


def numbered(lines: Sequence[Line]) -> Iterator[Html]:
    """Yield the lines of a program."""
    for number, line in enumerate(lines, 1):
        yield _row(line, number, "", ())


def difference(rows: Sequence[Row]) -> Iterator[Html]:
    """Yield the lines of a difference; what is far from any change is folded."""
    near = _near(rows)
    folded: list[Html] = []
    for row, is_near in zip(rows, near, strict=True):
        shown = _row(row.line, row.new or row.old, row.change, row.marks)
        if not is_near:
            folded.append(shown)
            continue
        yield from _fold(folded)
        folded = []
        yield shown
    yield from _fold(folded)


def _near(rows: Sequence[Row]) -> list[bool]:
    changed = [k for k, row in enumerate(rows) if row.change != "same"]
    if not changed:
        return [True] * len(rows)
    near = [False] * len(rows)
    for k in changed:
        for j in range(max(0, k - _CONTEXT), min(len(rows), k + _CONTEXT + 1)):
            near[j] = True
    return near


def _fold(rows: list[Html]) -> Iterator[Html]:
    if len(rows) == 1:
        yield rows[0]
    elif rows:
        head = element("summary", f"{len(rows)} lines that stayed")
        yield element("details", head, *rows, class_="fold")


def _row(line: Line, number: int, change: str, marks: tuple[tuple[int, int], ...]) -> Html:
    at = None if line.at is None else f"{line.at.file}:{line.at.line}"
    if line.at is None:
        link = element("span", class_="at")
    else:
        link = element(
            "a", str(line.at.line), class_="at", href=f"#{anchor_of(line.at)}",
            aria_label=f"your line {line.at.line}", tabindex=-1,
        )  # fmt: skip
    sign = None
    if change:
        word = element("span", _WORDS[change], class_="unseen") if change in _WORDS else None
        sign = element("span", word, _SIGNS[change], class_="sign")
    text = element("span", _marked(line.text, marks, change), class_="t")
    aside = element("span", line.aside, class_="aside") if line.aside else None
    kind = {"new": "r new", "gone": "r gone"}.get(change, "r")
    shown = element("span", str(number), class_="n")
    return element("div", shown, link, sign, text, aside, class_=kind, data_at=at)


def _marked(text: str, marks: tuple[tuple[int, int], ...], change: str) -> Html:
    if not marks:
        return joined(text or " ")
    name = "ins" if change == "new" else "del"
    parts: list[Html] = []
    end = 0
    for begin, stop in marks:
        parts += [joined(text[end:begin]), element(name, text[begin:stop])]
        end = stop
    return joined([*parts, joined(text[end:])])
