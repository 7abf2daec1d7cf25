"""Pictures of layouts and fragments: as text for a terminal, as SVG for a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from tile_core.errors import LayoutError

_HUES = 360
_CELL_HEIGHT = 24
_CHARACTER_WIDTH = 8
MOST_CELLS = 1 << 14
"""Pictures of more elements are not made unless asked for."""


Drawable = Any
"""A `Layout` or a `Fragment`, which draw themselves in notebooks: this module is below theirs."""


def draw(what: Drawable, max_rows: int = 32, max_columns: int = 32) -> str:
    """Return a grid of what is stored where.

    A cell of a layout is the address of the element, in elements; of a fragment, the threads
    that hold it and the register, ``T3:r1`` (``T0,4:r1`` if there are two). Boxes of more than
    two dimensions become one grid per leading coordinate. What is beyond the limits is
    shown as dots.
    """
    blocks = []
    for lead, cells, _ in _grids(what):
        rows, columns = cells.shape
        shown = [[str(cell) for cell in line[:max_columns]] for line in cells[:max_rows]]
        if columns > max_columns:
            shown = [[*line, "…"] for line in shown]
        if rows > max_rows:
            shown.append(["…"] * len(shown[0]))
        header = [str(k) if k < max_columns else "" for k in range(len(shown[0]))]
        labels = [str(k) if k < max_rows else "" for k in range(len(shown))]
        width = max(len(text) for text in [*header, *(t for line in shown for t in line)])
        margin = max(map(len, labels))
        lines = [" " * margin + " | " + " ".join(text.rjust(width) for text in header)]
        lines.append("-" * (margin + 1) + "+" + "-" * (len(lines[0]) - margin - 2))
        for label, line in zip(labels, shown, strict=True):
            lines.append(f"{label.rjust(margin)} | " + " ".join(t.rjust(width) for t in line))
        blocks.append("\n".join([*_title(lead), *(line.rstrip() for line in lines)]))
    return "\n\n".join(blocks)


def svg(what: Drawable, max_cells: int = MOST_CELLS) -> str:
    """Return the picture of `draw` as an SVG document.

    Cells of one colour belong together: the same thread of a fragment, the same physical row
    (all coordinates but the last) of a layout.

    Raises
    ------
    LayoutError
        If there are more than `max_cells` cells.
    """
    if what.size > max_cells:
        raise LayoutError(
            f"a picture of {what.size} cells is too large to be read",
            hint="draw a slice of the layout, or raise max_cells",
        )
    grids = list(_grids(what))
    longest = max(len(str(cell)) for _, cells, _ in grids for cell in cells.flat)
    width = _CHARACTER_WIDTH * (longest + 2)
    body: list[str] = []
    top = 0
    for lead, cells, groups in grids:
        for title in _title(lead):
            top += _CELL_HEIGHT
            body.append(f'<text x="4" y="{top - 8}" class="title">{escape(title)}</text>')
        for (row, column), cell in np.ndenumerate(cells):
            x, y = int(column) * width, top + int(row) * _CELL_HEIGHT
            hue = int(groups[row, column]) * 137 % _HUES  # neighbours get distant hues
            body.append(
                f'<rect x="{x}" y="{y}" width="{width}" height="{_CELL_HEIGHT}" '
                f'fill="hsl({hue}, 70%, 85%)" stroke="#888"/>'
                f'<text x="{x + width // 2}" y="{y + 16}">{escape(str(cell))}</text>'
            )
        top += (cells.shape[0] + 1) * _CELL_HEIGHT
    total = width * max(cells.shape[1] for _, cells, _ in grids)
    style = "text{font:12px monospace;text-anchor:middle}.title{text-anchor:start}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{top}">'
    return "\n".join([head, f"<style>{style}</style>", *body, "</svg>"])


def _grids(what: Drawable) -> Iterator[tuple[tuple[int, ...], np.ndarray, np.ndarray]]:
    """Yield the leading coordinates, the texts and the colour groups of each matrix."""
    if hasattr(what, "thread_table"):
        texts, groups = _fragment_cells(what)
    else:
        texts, groups = _layout_cells(what)
    while texts.ndim < 2:
        texts, groups = texts[None], groups[None]
    for lead in np.ndindex(*texts.shape[:-2]):
        yield tuple(lead), texts[lead], groups[lead]


def _layout_cells(layout: Drawable) -> tuple[np.ndarray, np.ndarray]:
    addresses = layout.linear_table()
    return addresses.astype(str).astype(object), addresses // math.prod(layout.output_shape[-1:])


def _fragment_cells(fragment: Drawable) -> tuple[np.ndarray, np.ndarray]:
    threads, slots = fragment.thread_table(), fragment.slot_table()
    texts = np.empty(fragment.shape, dtype=object)
    for at in np.ndindex(*fragment.shape):
        owners = sorted({int(t) for t in threads[at]})
        texts[at] = f"T{','.join(map(str, owners))}:r{int(slots[at])}"
    return texts, threads[..., 0]


def _title(lead: tuple[int, ...]) -> list[str]:
    return [f"[{', '.join(map(str, lead))}, :, :]"] if lead else []
