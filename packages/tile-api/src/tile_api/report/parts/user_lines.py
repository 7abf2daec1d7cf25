"""What the compiler said of lines of the user, and what the emulator counted there."""

from __future__ import annotations

from tile_api.report.markup import Html, Section, element
from tile_api.report.model import Count, KernelReport
from tile_api.report.parts.layouts import place_of


def remarks(report: KernelReport) -> Section:
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


_DEAR = 1.05
"""Lines that cost more than so many times the least are marked."""

_HEADS = ("Line", "Memory", "Access", "Requests", "Bytes", "Cost", "Least", "Ratio")


def counters(report: KernelReport) -> Section:
    """Return a table with a row for each line and memory."""
    if not report.counts:
        told = report.missing.get("counters", "the kernel accessed no memory")
        body = element("p", f"There are no counters: {told}.", class_="missing")
        return Section("counters", "Counters", "", body)
    numbers = range(3, len(_HEADS))
    head = element(
        "tr",
        *(
            element("th", text, scope="col", class_="number" if k in numbers else None)
            for k, text in enumerate(_HEADS)
        ),
    )
    rows = [_row(count, report) for count in report.counts]
    table = element("table", element("thead", head), element("tbody", *rows), class_="counts")
    return Section(
        "counters",
        "Counters",
        "What the accesses of each line cost, counted by the emulator over all blocks on generated "
        "inputs: transactions of shared memory, where 1 without conflicts becomes up to 32, and "
        "sectors of global memory. A ratio of 1 is the least that so many bytes can cost.",
        element("div", table, class_="wide", role="region", tabindex=0, aria_label="counters"),
    )


def _row(count: Count, report: KernelReport) -> Html:
    cost = count.cost
    is_dear = cost.ratio > _DEAR
    at = None if count.at is None else f"{count.at.file}:{count.at.line}"
    ratio = element("td", f"{cost.ratio:.2f}", class_="number dear" if is_dear else "number")
    return element(
        "tr",
        element("th", place_of(count.at, report) or count.where, scope="row"),
        element("td", cost.memory),
        element("td", "write" if cost.is_write else "read"),
        element("td", f"{cost.requests:,}", class_="number"),
        element("td", f"{cost.bytes:,}", class_="number"),
        element("td", f"{cost.cost:,} {cost.unit}", class_="number"),
        element("td", f"{cost.least:,}", class_="number"),
        ratio,
        data_at=at,
    )
