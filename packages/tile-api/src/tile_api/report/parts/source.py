"""What the user wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tile_api.report.code import anchor_of, listing
from tile_api.report.markup import Html, element, joined
from tile_api.report.model import KernelReport, Source, SourceLine
from tile_api.report.section import Section


def section(report: KernelReport) -> Section:
    """Return the user's functions, with the number of generated lines that come from each."""
    uses = {t.name: Counter(x.at for x in t.lines if x.at is not None) for t in report.texts}
    files = [_file(number, source, uses) for number, source in enumerate(report.sources)]
    return Section(
        "source",
        "What you wrote",
        "Point at a line, or choose its number, and everything that came of it is marked "
        "in all parts of this page. Beside each line is how many generated lines come from it.",
        joined(files) if files else element("p", "The text of the program is not to be had."),
    )


def _file(number: int, source: Source, uses: Mapping[str, Mapping[SourceLine, int]]) -> Html:
    rows = []
    for line, text in enumerate(source.lines, source.first):
        place = SourceLine(number, line)
        at, told = f"{number}:{line}", _told(place, uses)
        label = f"line {line}: mark what came of it"
        link = element("a", str(line), class_="n own", href=f"#{anchor_of(place)}",
                       aria_label=label)  # fmt: skip
        aside = element("span", told, class_="aside") if told else None
        rows.append(
            element("div", link, element("span", text or " ", class_="t"), aside,
                    class_="r", id=anchor_of(place), data_at=at)
        )  # fmt: skip
    heading = element("h3", source.name, class_="file")
    return joined([heading, listing(f"your program, {source.name}", rows)])


def _told(place: SourceLine, uses: Mapping[str, Mapping[SourceLine, int]]) -> str:
    """Return how much came of a line."""
    counts = ((name, uses.get(stage, {}).get(place, 0)) for stage, name in _COUNTED.items())
    return ", ".join(f"{count} of {name}" for name, count in counts if count)


_COUNTED = {"source": "source", "asm": "assembly"}
"""Texts of which lines are counted, and what they are called."""
