"""Lanes in their order, with names; tiles that are filled and read together share theirs."""

from __future__ import annotations

from tile_api.report.model import Bar, Lane, Timeline
from tile_api.report.source_lines import SourceLines
from tile_api.report.timeline.simulation_state import Drawn, LaneKey, Stage

_TOGETHER = 0.7
"""Tiles belong together if copies into them begin within so much time of each other."""


def arranged(stage: Stage, places: SourceLines) -> Timeline:
    """Return the picture: threads first, what works beside them, then the tiles."""
    names = _shared_names(stage.bars)
    drawn = [_renamed(bar, names) for bar in stage.bars]
    keys = sorted({bar.lane for bar in drawn}, key=lambda key: _rank(key, drawn))
    numbers = {key: k for k, key in enumerate(keys)}
    lanes = tuple(_lane(key, drawn) for key in keys)
    bars = [
        Bar(numbers[b.lane], b.activity, b.start, b.end, b.number, b.text, places.at(b.span))
        for b in sorted(drawn, key=lambda b: (b.start, b.end))
    ]
    return Timeline(lanes, tuple(_merged(bars, lanes)), tuple(stage.notes))


def _rank(key: LaneKey, bars: list[Drawn]) -> tuple[int, float, str, int]:
    kind, name, number = key
    if kind == "tile":
        first = min(b.start for b in bars if b.lane[:2] == (kind, name))
        return (1, first, name, number)
    return (0, number, "", kind == "unit")


def _lane(key: LaneKey, bars: list[Drawn]) -> Lane:
    kind, name, number = key
    if kind == "tile":
        return Lane(name if number < 0 else f"{name} [{number}]", "tile")
    if kind == "unit":
        return Lane("MMAs", "unit")
    mine = {b.activity for b in bars if b.lane == key}
    others = {b.lane for b in bars if b.lane[0] == "threads"} - {key}
    products = {b.lane[2] for b in bars if b.activity == "product"}
    if others:
        role = "consumer" if number in products else "producer" if "issue" in mine else "others"
        return Lane(f"{role}: {name}", "threads")
    return Lane(name, "threads")


def _shared_names(bars: list[Drawn]) -> dict[str, str]:
    """Return the name of the lane of each tile: that of all tiles filled at the same times."""
    filled: dict[str, list[tuple[float, int]]] = {}
    for bar in bars:
        if bar.activity == "transfer":
            filled.setdefault(bar.lane[1], []).append((bar.start, bar.lane[2]))
    groups: list[list[str]] = []
    for name, times in filled.items():
        for group in groups:
            other = filled[group[0]]
            if len(other) == len(times) and all(
                abs(a - b) < _TOGETHER and s == t
                for (a, s), (b, t) in zip(times, other, strict=True)
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return {name: ", ".join(group) for group in groups for name in group}


def _renamed(bar: Drawn, names: dict[str, str]) -> Drawn:
    kind, name, number = bar.lane
    if kind != "tile":
        return bar
    lane = (kind, names.get(name, name), number)
    return Drawn(lane, bar.activity, bar.start, bar.end, bar.number, bar.text, bar.span)


def _merged(bars: list[Bar], lanes: tuple[Lane, ...]) -> list[Bar]:
    """Return one bar for what tiles of one lane do together in an iteration."""
    found: list[Bar] = []
    last: dict[tuple[int, str], int] = {}
    for bar in bars:
        key = (bar.lane, bar.activity)
        k = last.get(key)
        if lanes[bar.lane].kind == "tile" and k is not None:
            before = found[k]
            if bar.number == before.number and bar.start < before.end:
                end = max(before.end, bar.end)
                found[k] = Bar(before.lane, before.activity, before.start, end, before.number,
                               before.text, before.at)  # fmt: skip
                continue
        last[key] = len(found)
        found.append(bar)
    return found
