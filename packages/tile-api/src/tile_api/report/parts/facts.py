"""Tables: what was compiled for what, what it needs of the machine, what took how long."""

from __future__ import annotations

from collections.abc import Iterable

from tile_api.report.markup import Html, Section, element, joined
from tile_api.report.model import Fact, FunctionNeeds, KernelReport, Origin
from tile_api.tracing import Duration


def overview(report: KernelReport) -> Section:
    """Return the facts of the kernel."""
    return Section("overview", "The kernel", "", table_of_facts(report.facts))


def origin(report: KernelReport) -> Section | None:
    """Return what the kernel was made of, if that was a function of whole arrays."""
    if not report.origin:
        return None
    return Section(
        "origin",
        "The function",
        "All kernels that the function of arrays became, in the order in which they run: its "
        "dimensions by what they are in each, its reductions by the rules that carry them, and why "
        "results are tensors between kernels.",
        kernels_of_function(report.origin),
    )


def kernels_of_function(kernels: Iterable[Origin]) -> Html:
    """Return a table for each kernel."""
    return joined([[element("h3", k.name), table_of_facts(k.facts)] for k in kernels])


def resources(report: KernelReport) -> Section:
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


def times(report: KernelReport) -> Section:
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


def table_of_facts(facts: Iterable[Fact]) -> Html:
    """Return a table with a line for each fact."""
    rows = [
        element(
            "tr",
            element("th", fact.name, scope="row"),
            element("td", element("span", fact.value, class_="value"),
                    element("span", fact.remark, class_="remark") if fact.remark else None),
        )
        for fact in facts
    ]  # fmt: skip
    return element("table", element("tbody", *rows), class_="facts")
