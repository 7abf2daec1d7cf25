"""The program after each pass, and what the pass changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tile_api.report.code import difference, listing
from tile_api.report.markup import Html, element, in_words, joined
from tile_api.report.model import KernelReport, PassStep
from tile_api.report.section import Entry, Section

_SHORT = 60
"""Differences of more lines are closed at first."""


def section(report: KernelReport) -> Section:
    """Return all passes in order; those that changed nothing share a line."""
    anchors = {id(step): f"pass-{k}-{step.name}" for k, step in enumerate(report.steps)}
    body: list[Html] = []
    for launch, steps in groupby(report.steps, key=lambda step: step.launch):
        body.append(element("h3", _heading(launch, report)))
        body += _group(list(steps), anchors)
    entries = tuple(
        Entry(anchors[id(step)], step.name) for step in report.steps if step.kind != "same"
    )
    return Section(
        "passes",
        "Pass after pass",
        "The program after each pass that changed it. What the pass wrote and what it took out are "
        "marked; lines that stayed are folded. The second column is the line you wrote.",
        element("div", *body, class_="passes"),
        entries,
    )


def _heading(launch: int, report: KernelReport) -> str:
    if not launch:
        return "The tile program"
    launches = {step.launch for step in report.steps if step.launch}
    return "The threads of a block" if len(launches) == 1 else f"The threads of launch {launch}"


def _group(steps: list[PassStep], anchors: dict[int, str]) -> Iterator[Html]:
    for is_same, run in groupby(steps, key=lambda step: step.kind == "same"):
        if is_same:
            yield _idle(list(run))
        else:
            yield from (_step(step, anchors[id(step)]) for step in run)


def _idle(steps: list[PassStep]) -> Html:
    names = [element("abbr", s.name, title=s.summary or s.name) for s in steps]
    spaced = [part for name in names for part in (", ", name)][1:]
    return element("p", "Changed nothing: ", spaced, class_="idle")


def _step(step: PassStep, anchor: str) -> Html:
    is_open = step.kind == "annotated" or (
        step.kind == "changed" and step.launch == 0 and step.added + step.removed <= _SHORT
    )
    head = element(
        "summary",
        element("span", step.name, class_="pass"),
        _badge(step),
        element("span", f"{step.milliseconds:.2f} ms", class_="ms") if step.milliseconds else None,
    )
    rows = listing(f"the program after {step.name}", difference(step.rows))
    summary = element("p", in_words(step.summary), class_="summary") if step.summary else None
    return element("details", head, summary, rows, id=anchor, class_="step", open=is_open)


def _badge(step: PassStep) -> Html:
    if step.kind == "changed":
        return joined(
            [
                element("span", f"+{step.added}", class_="badge new"),
                element("span", f"\N{MINUS SIGN}{step.removed}", class_="badge gone"),
            ]
        )
    word = {"annotated": "layouts", "rewritten": "written anew"}[step.kind]
    word = "traced" if step.name == "trace" else word
    return element("span", word, class_="badge")
