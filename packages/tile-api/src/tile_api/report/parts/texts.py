"""The last stages of the program: what one thread does, the source, the assembly."""

from __future__ import annotations

from tile_api.report.code import listing, numbered
from tile_api.report.markup import Html, element, joined
from tile_api.report.model import KernelReport, Text
from tile_api.report.section import Entry, Section


def section(report: KernelReport) -> Section:
    """Return the texts, each of them closed at first."""
    body = [_text(text) for text in report.texts]
    if "asm" in report.missing:
        told = f"There is no assembly: {report.missing['asm']}."
        body.append(element("p", told, class_="missing"))
    return Section(
        "code",
        "What became of it",
        "The whole program at the last stages, linked to your lines as far as they are known.",
        joined(body),
        tuple(Entry(f"text-{text.name}", text.title) for text in report.texts),
    )


def _text(text: Text) -> Html:
    total = len(text.lines) + text.left_out
    head = element(
        "summary",
        element("span", text.title, class_="pass"),
        element("span", f"{total:,} lines", class_="badge"),
    )
    cut = None
    if text.left_out:
        cut = element("p", f"{text.left_out:,} more lines are left out.", class_="missing")
    rows = listing(text.title, numbered(text.lines))
    summary = element("p", text.explanation, class_="summary")
    return element("details", head, summary, rows, cut, id=f"text-{text.name}", class_="step")
