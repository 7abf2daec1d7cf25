"""What the compiler said about its choices."""

from __future__ import annotations

from tile_api.report.markup import element
from tile_api.report.model import KernelReport
from tile_api.report.parts.layouts import place_of
from tile_api.report.section import Section


def section(report: KernelReport) -> Section:
    """Return a line for each remark: its kind, what was said, by which pass, of which line."""
    items = [
        element("li", f"{said.kind}: {said.message} [{said.pass_name}] ", place_of(at, report))
        for said, at in report.remarks
    ]
    return Section(
        "remarks",
        "Remarks",
        "What passes did, what they could not do, and why.",
        element("ul", *items, class_="notes") if items else element("p", "Nothing was said."),
    )
