"""What the user wrote."""

from __future__ import annotations

from tile_api.report.code import anchor_of, listing
from tile_api.report.markup import Html, element, joined
from tile_api.report.model import Place, Report, Source
from tile_api.report.section import Section


def section(report: Report) -> Section:
    """Return the user's functions, with the number of lines of the program that come from each."""
    uses: dict[Place, int] = {}
    lines = [line for text in report.texts for line in text.lines]
    for line in lines:
        if line.at is not None:
            uses[line.at] = uses.get(line.at, 0) + 1
    files = [_file(number, source, uses) for number, source in enumerate(report.sources)]
    return Section(
        "source",
        "What you wrote",
        "Point at a line, or choose its number, and everything that came of it is marked "
        "in all parts of this page.",
        joined(files) if files else element("p", "The text of the program is not to be had."),
    )


def _file(number: int, source: Source, uses: dict[Place, int]) -> Html:
    rows = []
    for line, text in enumerate(source.lines, source.first):
        place = Place(number, line)
        at, used = f"{number}:{line}", uses.get(place, 0)
        label = f"line {line}: mark what came of it"
        link = element("a", str(line), class_="n own", href=f"#{anchor_of(place)}",
                       aria_label=label)  # fmt: skip
        told = f"{used} lines of code" if used > 1 else "1 line of code" if used else ""
        aside = element("span", told, class_="aside") if told else None
        rows.append(
            element("div", link, element("span", text or " ", class_="t"), aside,
                    class_="r", id=anchor_of(place), data_at=at)
        )  # fmt: skip
    heading = element("h3", source.name, class_="file")
    return joined([heading, listing(f"your program, {source.name}", rows)])
