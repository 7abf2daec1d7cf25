"""One part of a page, and what the table of contents says of it."""

from __future__ import annotations

from dataclasses import dataclass

from tile_api.report.markup import Html, element


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the table of contents below that of a part."""

    anchor: str
    title: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: what one is looking at in a sentence or two, and more to link to."""

    anchor: str
    title: str
    lead: str
    body: Html
    entries: tuple[Entry, ...] = ()

    def html(self) -> Html:
        """Return the part with its heading."""
        title = f"{self.anchor}-title"
        return element(
            "section",
            element("h2", self.title, id=title),
            element("p", self.lead, class_="lead") if self.lead else None,
            self.body,
            id=self.anchor,
            aria_labelledby=title,
        )
