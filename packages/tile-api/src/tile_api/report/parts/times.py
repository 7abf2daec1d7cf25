"""How long each phase and each pass took."""

from __future__ import annotations

from tile_api.report.markup import Html, element
from tile_api.report.model import KernelReport
from tile_api.report.section import Section
from tile_api.tracing import Duration


def section(report: KernelReport) -> Section:
    """Return phases, and below each the passes in it, with bars on one scale of time."""
    end = report.timings.milliseconds or 1.0
    head = element(
        "tr",
        element("th", "Phase or pass", scope="col"),
        element("th", "ms", scope="col", class_="number"),
        element("th", "When", scope="col", class_="when"),
    )
    rows = [_row(duration, end) for duration in report.timings]
    table = element("table", element("thead", head), element("tbody", *rows), class_="times")
    return Section(
        "times",
        "Times",
        f"What the compilation for this report spent {end:.1f} ms on. Nothing was looked up in a "
        "cache, and tools that were loaded before cost nothing again.",
        element("div", table, class_="wide", role="region", tabindex=0, aria_label="times"),
    )


def _row(duration: Duration, end: float) -> Html:
    left, width = duration.start_ms / end, duration.milliseconds / end
    style = f"left:{left:.3%};width:{max(width, 0.002):.3%}"
    bar = element("span", element("span", class_=f"fill {duration.category}", style=style),
                  class_="bar", aria_hidden="true")  # fmt: skip
    name = element("th", duration.name, scope="row", style=f"padding-left:{duration.depth + 0.4}em")
    number = element("td", f"{duration.milliseconds:.2f}", class_="number")
    return element("tr", name, number, element("td", bar, class_="when"), class_=duration.category)
