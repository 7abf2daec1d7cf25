"""Layouts as pictures: of each tile its corner in words, and all of it in colours."""

from __future__ import annotations

import base64
import colorsys
import struct
import zlib
from typing import Any

import numpy as np

from tile_api.report.model import Cell, Drawn, Layouts, Picture
from tile_api.report.source_lines import SourceLines
from tile_core.ir.buffer import Scope
from tile_core.layout import Fragment, Layout
from tile_core.passes.layout_report import LayoutReport, LoopOrder, StoredTile

ROWS, COLUMNS = 8, 16
"""How much of a tile is shown in words."""

MOST_ELEMENTS = 1 << 18
"""Tiles of more elements are not drawn."""

BANKS = 32
_OF_WARPS = "Warps have colours far apart, threads of a warp have shades of one."
_IN_REGISTERS = f"T3:r1 is register 1 of thread 3. {_OF_WARPS}"
_IN_BANKS = (
    "Numbers are addresses, in elements. Colours are banks of shared memory, red for bank 0: what "
    "threads access at once should be colourful."
)
_IN_MEMORY = "Numbers are addresses, in elements. Colours go from the first address to the last."
_IN_LOOPS = f"T3:r1 is iteration 1 of thread 3. {_OF_WARPS}"


def drawn(report: LayoutReport, places: SourceLines, warp: int) -> Layouts:
    """Return pictures of all tiles and loops; copies of one loop are shown once.

    Threads are coloured by warps, of one thread where there are none: shared memory then has no
    banks, either, after which addresses are coloured.
    """
    return Layouts(
        tuple(_tile(tile, places, warp) for tile in report.tiles),
        tuple(dict.fromkeys(_loop(loop, places, warp) for loop in report.loops)),
    )


def _tile(tile: StoredTile, places: SourceLines, warp: int) -> Drawn:
    buffer = tile.buffer
    shape = "x".join(map(str, tile.layout.shape))
    what = f"{buffer.scope.value} {buffer.dtype}, {shape}"
    in_banks = warp > 1 and buffer.scope is Scope.SHARED
    size = buffer.dtype.bits
    picture, remark = _picture(tile.layout, size if in_banks else None, _IN_REGISTERS, warp)
    at = places.at(tile.reason.span)
    return Drawn(buffer.name, what, repr(tile.layout), tile.reason.who, at, picture, remark)


def _loop(order: LoopOrder, places: SourceLines, warp: int) -> Drawn:
    loop = order.loop
    extents = "x".join(map(str, loop.extents)) or "1"
    what = f"{extents} iterations, {loop.rounds} times {loop.vector} for each thread"
    picture, remark = _picture(loop.fragment, None, _IN_LOOPS, warp)
    at = places.at(order.span)
    return Drawn(order.who, what, repr(loop.fragment), "", at, picture, remark)


def _picture(
    what: Layout | Fragment, bits: int | None, legend: str, warp: int
) -> tuple[Picture | None, str]:
    """Return the picture, and a remark on what is not in it.

    Addresses are coloured by banks if `bits` of an element are given; the legend is of fragments.
    """
    if what.size > MOST_ELEMENTS:
        return None, f"{what.size:,} elements are too many to be drawn."
    if isinstance(what, Fragment):
        texts, hues = _of_fragment(what, warp)
    else:
        legend = _IN_MEMORY if bits is None else _IN_BANKS
        texts, hues = _of_layout(what, bits)
    remark = ""
    if texts.ndim > 2:
        count = int(np.prod(texts.shape[:-2]))
        remark = f"The first of {count} matrices is drawn." if count > 1 else ""
        texts, hues = (x.reshape(-1, *x.shape[-2:])[0] for x in (texts, hues))
    texts, hues = (x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1) for x in (texts, hues))
    corner = tuple(
        tuple(Cell(str(t), int(h)) for t, h in zip(line[:COLUMNS], tints[:COLUMNS], strict=True))
        for line, tints in zip(texts[:ROWS], hues[:ROWS], strict=True)
    )
    rows, columns = hues.shape
    return Picture(rows, columns, corner, image_of(hues), legend), remark


def _of_layout(layout: Layout, bits: int | None) -> tuple[Any, Any]:
    addresses = layout.linear_table()
    if bits is None:
        hues = addresses * 300 // max(1, layout.cosize)
    else:
        hues = addresses * bits // 32 % BANKS * 360 // BANKS
    return addresses, hues


def _of_fragment(fragment: Fragment, warp: int) -> tuple[Any, Any]:
    threads, slots = fragment.thread_table(), fragment.slot_table()
    texts = np.empty(fragment.shape, dtype=object)
    leading = (0,) * max(0, len(fragment.shape) - 2)
    for at in np.ndindex(*fragment.shape[len(leading) :]):
        if max(at, default=0) < max(ROWS, COLUMNS):
            where = (*leading, *at)
            texts[where] = f"T{_few(sorted({int(t) for t in threads[where]}))}:r{int(slots[where])}"
    warps = threads[..., 0] // warp
    span = 360 // (int(warps.max(initial=0)) + 1)
    hues = warps * span + threads[..., 0] % warp * span * 3 // (4 * warp)
    return texts, hues


def _few(owners: list[int]) -> str:
    if len(owners) <= 2:
        return ",".join(map(str, owners))
    return f"{owners[0]}…{owners[-1]}"


def image_of(hues: np.ndarray) -> str:
    """Return a picture with one point for each element of `hues`, as a PNG file in base 64.

    Colours are such that they can be told apart on white and on black. Hues of shape (rows,
    columns) are from 0 to 359.

    Notes
    -----
    Source: W3C, "Portable Network Graphics (PNG) Specification", chunks IHDR, IDAT and IEND.
    """
    palette = np.array([_colour(hue) for hue in range(360)], dtype=np.uint8)
    points = palette[hues]
    rows, columns = hues.shape
    lines = b"".join(b"\0" + points[row].tobytes() for row in range(rows))
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*c) for c in chunks)).decode()


def _colour(hue: int) -> tuple[int, int, int]:
    red, green, blue = colorsys.hls_to_rgb(hue / 360, 0.62, 0.55)
    return round(red * 255), round(green * 255), round(blue * 255)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
