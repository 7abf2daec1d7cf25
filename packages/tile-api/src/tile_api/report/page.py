"""The page: one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from tile_api.report.markup import Html, Section, element, joined
from tile_api.report.model import KernelReport
from tile_api.report.parts import facts, layouts, pipeline, programs, user_lines

_PARTS = (
    facts.overview, facts.origin, programs.source_section, pipeline.section, layouts.section,
    user_lines.remarks, facts.resources, user_lines.counters, programs.passes_section,
    programs.texts_section, facts.times,
)  # fmt: skip

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""Browsers load nothing from elsewhere, whatever the page says."""


def page_of(report: KernelReport) -> str:
    """Return the report as an HTML document."""
    sections = [made for section in _PARTS if (made := section(report)) is not None]
    title = f"{report.name} for {report.target}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", _asset("page.css")),
    )
    body = element(
        "body",
        element("a", "Skip to the report", href="#main", class_="skip"),
        _header(report),
        element(
            "div",
            _contents(sections),
            element("main", *(s.html() for s in sections), id="main", tabindex=-1),
            class_="columns",
        ),
        _bar(),
        element("script", _asset("page.js")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _asset(name: str) -> Html:
    return Html(files("tile_api.report").joinpath(name).read_text("utf-8"))


def _header(report: KernelReport) -> Html:
    kernel = element("span", report.name, class_="kernel")
    word = element("span", "for", class_="for")
    target = element("span", report.target, class_="target")
    return element("header", element("h1", kernel, " ", word, " ", target))


def _contents(sections: Sequence[Section]) -> Html:
    items = [
        element(
            "li",
            element("a", section.title, href=f"#{section.anchor}"),
            element("ol", *(element("li", element("a", e.title, href=f"#{e.anchor}"))
                            for e in section.entries)) if section.entries else None,
        )
        for section in sections
    ]  # fmt: skip
    head = element("summary", "Contents")
    return element(
        "nav", element("details", head, element("ol", *items), open=True), aria_label="Contents"
    )


def _bar() -> Html:
    """Return the line at the bottom that shows the user's line; scripts fill it."""
    return joined(
        element(
            "div",
            element("output", class_="told"),
            element("button", "Previous", type="button", class_="previous"),
            element("button", "Next", type="button", class_="next"),
            element("button", "Unmark", type="button", class_="unmark"),
            class_="origin",
            hidden=True,
        )
    )
