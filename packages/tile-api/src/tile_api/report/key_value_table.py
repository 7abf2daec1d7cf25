"""Names and values as a table."""

from __future__ import annotations

from collections.abc import Iterable

from tile_api.report.markup import Html, element
from tile_api.report.model import Fact


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
