"""The pipeline, drawn: who copies and who computes which iteration, and what overlaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_api.report.markup import Html, Section, element, joined
from tile_api.report.model import Bar, KernelReport, Lane, Timeline

UNIT, HEIGHT, GAP, TOP = 48, 22, 6, 20
"""Points: one unit of time, one lane, the room between lanes, the room for the scale."""

_BEGIN, _END = 24.0, 12.0
"""Units of time that are drawn of the beginning, and of the end, of long programs."""

_WORDS = {"issue": "begins", "transfer": "copy", "product": "product", "work": "work",
          "wait": "waits", "use": "read"}  # fmt: skip
_LABELS = {"transfer": "copy {}", "product": "gemm {}", "use": "use {}"}
_CHARACTER = 7.0
_COLOURS = 6


def section(report: KernelReport) -> Section:
    """Return lanes of threads and of tiles, with what happens in them."""
    found = report.pipeline
    if found is None:
        told = report.missing.get("pipeline", "nothing overlaps")
        body = element("p", f"There is no picture: {told}.", class_="missing")
        return Section("pipeline", "Pipeline", "", body)
    parts: list[Html] = []
    for title, begin, end in _windows(found.length):
        if title:
            parts.append(element("h3", title))
        parts.append(_picture(found, begin, end, title or "all iterations"))
    parts.append(_legend())
    parts += [element("p", note, class_="missing") for note in found.notes]
    return Section(
        "pipeline",
        "Pipeline",
        "What the threads of one block do, and which tile is being filled or read meanwhile. "
        "Numbers are iterations, and each has its colour. The program was acted out with one "
        "length for all copies and one for all products: order and overlap are those of the "
        "program, lengths are not measured.",
        joined(parts),
    )


def _windows(length: float) -> Iterable[tuple[str, float, float]]:
    if length <= _BEGIN + _END:
        return [("", 0.0, length)]
    return [("The first iterations", 0.0, _BEGIN), ("The last iterations", length - _END, length)]


def _picture(found: Timeline, begin: float, end: float, title: str) -> Html:
    bars = [bar for bar in found.bars if bar.start < end and bar.end > begin]
    width = round((end - begin) * UNIT) + 2
    height = TOP + len(found.lanes) * (HEIGHT + GAP)
    names = [
        element("div", lane.name, class_=f"lane {lane.kind}", title=lane.name)
        for lane in found.lanes
    ]
    rows = [
        element("rect", x=0, y=_top(k), width=width, height=HEIGHT, class_=f"row {lane.kind}")
        for k, lane in enumerate(found.lanes)
    ]
    drawing = element(
        "svg",
        element("title", f"Timeline, {title}: {_told(found.lanes, bars)}"),
        *rows,
        *(_bar(bar, begin, end) for bar in bars),
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
    )
    scroll = element("div", drawing, class_="wide", role="region", tabindex=0,
                     aria_label=f"timeline, {title}")  # fmt: skip
    return element("div", element("div", *names, class_="lanes"), scroll, class_="timeline")


def _top(lane: int) -> int:
    return TOP + lane * (HEIGHT + GAP)


def _bar(bar: Bar, begin: float, end: float) -> Html:
    left = max(bar.start, begin) - begin
    right = min(bar.end, end) - begin
    x, width = left * UNIT, max((right - left) * UNIT - 1, 2)
    at = None if bar.at is None else f"{bar.at.file}:{bar.at.line}"
    title = f"{_WORDS[bar.activity]}, iteration {bar.number}: {bar.text}"
    shape = element(
        "rect", element("title", title), x=f"{x:.1f}", y=_top(bar.lane), width=f"{width:.1f}",
        height=HEIGHT, rx=3, class_=f"bar-{bar.activity} c{bar.number % _COLOURS}", data_at=at,
    )  # fmt: skip
    label = _LABELS.get(bar.activity, "").format(bar.number)
    if not label or len(label) * _CHARACTER > width:
        label = str(bar.number) if bar.activity in _LABELS else ""
    if not label or len(label) * _CHARACTER > width:
        return shape
    text = element(
        "text", label, x=f"{x + width / 2:.1f}", y=_top(bar.lane) + 15, aria_hidden="true"
    )
    return joined([shape, text])


def _told(lanes: Sequence[Lane], bars: Sequence[Bar]) -> str:
    """Return the picture in words."""
    parts = []
    for number, lane in enumerate(lanes):
        mine = [b for b in bars if b.lane == number]
        iterations = [b.number for b in mine if b.activity in ("product", "transfer")]
        if iterations:
            parts.append(f"{lane.name} has iterations {min(iterations)} to {max(iterations)}")
    return "; ".join(parts)


def _legend() -> Html:
    items = (
        ("bar-transfer", "a copy fills the tile"),
        ("bar-use", "the tile is read"),
        ("bar-product", "an MMA"),
        ("bar-work", "other work"),
        ("bar-issue", "a copy or MMA is issued"),
        ("bar-wait", "threads wait"),
    )
    shown = []
    for name, words in items:
        swatch = element("svg", element("rect", x=1, y=1, width=22, height=12, rx=2,
                                        class_=f"{name} c0"), width=24, height=14,
                         aria_hidden="true")  # fmt: skip
        shown.append(element("li", swatch, " ", words))
    return element("ul", *shown, class_="legend")
