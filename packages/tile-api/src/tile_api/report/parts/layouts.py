"""Where tiles are stored, and who runs loops, drawn."""

from __future__ import annotations

from tile_api.report.code import anchor_of
from tile_api.report.markup import Entry, Html, Section, element, joined
from tile_api.report.model import Drawn, KernelReport, Picture, SourceLine

_POINT = (2, 3, 4, 6, 8, 12, 16)
_WIDEST = 384


def section(report: KernelReport) -> Section:
    """Return a picture of each tile and loop, and what there is to say of them."""
    found = report.layouts
    if found is None:
        told = f"No layouts are shown: {report.missing.get('layouts', 'there are none')}."
        return Section("layouts", "Layouts", "", element("p", told, class_="missing"))
    body: list[Html] = []
    body += [_drawn(tile, f"tile-{k}", report, True) for k, tile in enumerate(found.tiles)]
    if found.loops:
        body.append(element("h3", "Who runs which iteration"))
        body += [_drawn(loop, f"loop-{k}", report, False) for k, loop in enumerate(found.loops)]
    if not found.tiles:
        body.append(element("p", "The kernel has no tiles of its own on this target."))
    return Section(
        "layouts",
        "Layouts",
        "How each tile is stored, as a function from its coordinates, and who asked for that. The "
        "table is the corner of the tile; the image is all of it.",
        joined(body),
        tuple(Entry(f"tile-{k}", tile.name) for k, tile in enumerate(found.tiles)),
    )


def place_of(at: SourceLine | None, report: KernelReport) -> Html | None:
    """Return a link to a line of the user."""
    if at is None:
        return None
    where = f"{report.sources[at.file].name}:{at.line}"
    return element("a", where, href=f"#{anchor_of(at)}", class_="place",
                   data_at=f"{at.file}:{at.line}")  # fmt: skip


def _drawn(drawn: Drawn, anchor: str, report: KernelReport, is_open: bool) -> Html:
    head = element(
        "summary",
        element("span", drawn.name, class_="pass"),
        element("span", drawn.what, class_="badge"),
        None if is_open else place_of(drawn.at, report),
    )
    who = None
    if drawn.who or drawn.at is not None:
        who = element(
            "span", "by " if drawn.who else "", drawn.who, " ", place_of(drawn.at, report)
        )
    told = element("p", element("code", drawn.function), " ", who, class_="summary")
    remark = element("p", drawn.remark, class_="summary") if drawn.remark else None
    picture = _picture(drawn.picture, drawn.name) if drawn.picture is not None else None
    return element("details", head, told, remark, picture, id=anchor, class_="step", open=is_open)


def _picture(picture: Picture, name: str) -> Html:
    columns = len(picture.corner[0]) if picture.corner else 0
    head = element(
        "tr", element("td"), *(element("th", str(k), scope="col") for k in range(columns))
    )
    rows = [
        element(
            "tr",
            element("th", str(k), scope="row"),
            *(element("td", cell.text, style=f"--h:{cell.hue}") for cell in line),
        )
        for k, line in enumerate(picture.corner)
    ]
    table = element("table", element("thead", head), element("tbody", *rows), class_="cells")
    shown = min(picture.rows, len(rows)), min(picture.columns, columns)
    caption = (
        f"The first {shown[0]} rows and {shown[1]} columns of {picture.rows}x{picture.columns}."
    )
    corner = element("div", table, class_="wide", role="region", tabindex=0,
                     aria_label=f"corner of {name}")  # fmt: skip
    return element(
        "figure",
        element("div", corner, _image(picture, name), class_="both"),
        element("figcaption", caption, " ", picture.legend),
    )


def _image(picture: Picture, name: str) -> Html:
    fitting = [p for p in _POINT if p * max(picture.columns, picture.rows) <= _WIDEST]
    point = fitting[-1] if fitting else 1
    return element(
        "img", src=f"data:image/png;base64,{picture.image}",
        alt=f"{name}: all {picture.rows} rows and {picture.columns} columns, by colour",
        width=picture.columns * point, height=picture.rows * point, class_="points",
    )  # fmt: skip
