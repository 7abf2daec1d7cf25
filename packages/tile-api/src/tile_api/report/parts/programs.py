"""The program: as the user wrote it, after each pass, and at the last stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby

from tile_api.report.code import anchor_of, difference, listing, numbered
from tile_api.report.markup import Entry, Html, Section, element, in_words, joined
from tile_api.report.model import KernelReport, PassStep, Source, SourceLine, Text


def source_section(report: KernelReport) -> Section:
    """Return the user's functions, with the number of generated lines that come from each."""
    uses = {t.name: Counter(x.at for x in t.lines if x.at is not None) for t in report.texts}
    files = [_file(number, source, uses) for number, source in enumerate(report.sources)]
    return Section(
        "source",
        "What you wrote",
        "Point at a line, or choose its number, and everything that came of it is marked "
        "in all parts of this page. Beside each line is how many generated lines come from it.",
        joined(files) if files else element("p", "The text of the program is not to be had."),
    )


def _file(number: int, source: Source, uses: Mapping[str, Mapping[SourceLine, int]]) -> Html:
    rows = []
    for line, text in enumerate(source.lines, source.first):
        place = SourceLine(number, line)
        at, told = f"{number}:{line}", _told(place, uses)
        label = f"line {line}: mark what came of it"
        link = element("a", str(line), class_="n own", href=f"#{anchor_of(place)}",
                       aria_label=label)  # fmt: skip
        aside = element("span", told, class_="aside") if told else None
        rows.append(
            element("div", link, element("span", text or " ", class_="t"), aside,
                    class_="r", id=anchor_of(place), data_at=at)
        )  # fmt: skip
    heading = element("h3", source.name, class_="file")
    return joined([heading, listing(f"your program, {source.name}", rows)])


def _told(place: SourceLine, uses: Mapping[str, Mapping[SourceLine, int]]) -> str:
    """Return how much came of a line."""
    counts = ((name, uses.get(stage, {}).get(place, 0)) for stage, name in _COUNTED.items())
    return ", ".join(f"{count} of {name}" for name, count in counts if count)


_COUNTED = {"source": "source", "asm": "assembly"}
"""Texts of which lines are counted, and what they are called."""


_SHORT = 60
"""Differences of more lines are closed at first."""


def passes_section(report: KernelReport) -> Section:
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


def texts_section(report: KernelReport) -> Section:
    """Return the texts, each of them closed at first."""
    body = [_text(text) for text in report.texts]
    if "asm" in report.missing:
        told = f"There is no assembly: {report.missing['asm']}."
        body.append(element("p", told, class_="missing"))
    return Section(
        "code",
        "What became of it",
        "The whole program at the last stages, linked to your lines as far as they are known.",
        joined(body),
        tuple(Entry(f"text-{text.name}", text.title) for text in report.texts),
    )


def _text(text: Text) -> Html:
    total = len(text.lines) + text.left_out
    head = element(
        "summary",
        element("span", text.title, class_="pass"),
        element("span", f"{total:,} lines", class_="badge"),
    )
    cut = None
    if text.left_out:
        cut = element("p", f"{text.left_out:,} more lines are left out.", class_="missing")
    rows = listing(text.title, numbered(text.lines))
    summary = element("p", text.explanation, class_="summary")
    return element("details", head, summary, rows, cut, id=f"text-{text.name}", class_="step")
