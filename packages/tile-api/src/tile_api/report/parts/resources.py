"""What each launch needs of the machine."""

from __future__ import annotations

from tile_api.report.key_value_table import table_of_facts
from tile_api.report.markup import Html, element, joined
from tile_api.report.model import FunctionNeeds, KernelReport
from tile_api.report.section import Section


def section(report: KernelReport) -> Section:
    """Return registers, memory and occupancy, as far as somebody told them."""
    body = [_function(needs) for needs in report.needs]
    if "resources" in report.missing:
        told = report.missing["resources"]
        text = f"Registers and occupancy are not known: {told}."
        body.append(element("p", text, class_="missing"))
    return Section(
        "resources",
        "Resources",
        "What one launch needs, and how many of its blocks a multiprocessor runs at once."
        if report.needs
        else "",
        joined(body),
    )


def _function(needs: FunctionNeeds) -> Html:
    meter = None
    if needs.occupied is not None:
        share = f"{needs.occupied:.0%}"
        meter = element(
            "p",
            element("span", "Occupancy", class_="name"),
            element("span", element("span", class_="fill", style=f"width:{share}"),
                    class_="bar", role="img", aria_label=f"occupancy {share}"),
            element("span", share, class_="value"),
            class_="meter",
        )  # fmt: skip
    return joined([element("h3", needs.name), meter, table_of_facts(needs.facts)])
