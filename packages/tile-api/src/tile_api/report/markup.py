"""HTML that cannot be broken by what it shows: all is escaped unless it is `Html`; sections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

VOID = frozenset({"br", "col", "hr", "img", "meta"})
"""Elements that have no content."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"
"""What elements contain: texts, which are escaped, `Html`, and lists of them."""


def element(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """Return an element.

    Parameters
    ----------
    attributes
        ``class_`` is ``class``, other underscores are hyphens. None and False leave one out, True
        leaves out its value.

    Examples
    --------
    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{shown}>")
    return Html(f"<{name}{shown}>{joined(children)}</{name}>")


def joined(child: Child) -> Html:
    """Return children one after the other."""
    if child is None:
        return Html("")
    if isinstance(child, Html):
        return child
    if isinstance(child, (str, int)):
        return Html(escape(str(child), quote=False))
    return Html("".join(joined(c) for c in child))


def in_words(text: str) -> Html:
    """Return a sentence; what stands between backticks is code.

    Examples
    --------
    >>> in_words("Return `kernel`.")
    'Return <code>kernel</code>.'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return joined(text)
    return joined([element("code", p) if k % 2 else joined(p) for k, p in enumerate(parts)])


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


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
