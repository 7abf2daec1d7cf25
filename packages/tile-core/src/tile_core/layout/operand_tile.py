"""Tiles of shared memory that matrix instructions read on their own, and how they are told where.

Such an instruction is given a descriptor in place of addresses: where the operand starts, which
swizzle its bytes have, and two distances. It can describe tiles that are cut into boxes of whole
rows, 128, 64, 32 or 16 bytes wide, one box after the other; tensor copies fill the same boxes.
PTX ISA, "Matrix Descriptor".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tile_core.errors import LayoutError
from tile_core.layout.box import extents_of
from tile_core.layout.constructors import packed_panels
from tile_core.layout.layout import Layout
from tile_core.layout.swizzle import CHUNK_BITS, PERIOD, Swizzle, swizzled
from tile_core.records import dataclass

UNIT = 16
"""Bytes that a descriptor counts in."""

STEP = 32
"""Bytes of an operand's rows, or columns, that one instruction multiplies."""

_SPANS = (128, 64, 32, 16)


@dataclass(frozen=True, slots=True)
class OperandWalk:
    """What a descriptor says beside where the operand starts."""

    swizzle: int  # bytes in which chunks change places: 128, 64 or 32, or 0 for none
    # leading, stride: distances in bytes. K-major: `stride` between groups of 8 rows; without
    # swizzle, `leading` between neighbouring 16 bytes of a row. MN-major: `stride` between groups
    # of 8 steps of K and `leading` between boxes; without swizzle, the other way round.
    leading: int
    stride: int


@dataclass(frozen=True, slots=True)
class OperandTile:
    """A tile of rows and columns as boxes of all rows and `span` bytes of columns."""

    # rows, columns: extents, in elements.
    rows: int
    columns: int
    bits: int  # width of an element in memory
    # Bytes of a row of a box. Chunks of 16 bytes are exchanged within them as in `swizzled`; boxes
    # of 16 bytes have nothing to exchange.
    span: int

    @property
    def box_bytes(self) -> int:
        """Bytes from one box to the next."""
        return self.rows * self.span

    @property
    def span_elements(self) -> int:
        """Elements of a row of a box."""
        return self.span * 8 // self.bits

    @property
    def alignment(self) -> int:
        """Bytes that the tile's place is a multiple of: the swizzle follows the address."""
        return PERIOD * self.span

    def layout(self) -> Layout:
        """Return the layout itself, of the shape ``(rows, columns)``."""
        return _of_span((self.rows, self.columns), self.bits, self.span)

    def walk(self, *, is_k_last: bool) -> OperandWalk:
        """Return the descriptor's distances.

        With `is_k_last` columns are steps of K (K-major), else rows are (MN-major).
        """
        group = PERIOD * self.span
        if self.span > UNIT:
            return OperandWalk(self.span, UNIT if is_k_last else self.box_bytes, group)
        if is_k_last:
            return OperandWalk(0, self.box_bytes, group)
        return OperandWalk(0, group, self.box_bytes)

    def units(self, x: Any, k: Any, *, is_k_last: bool) -> Any:
        """Return how far an instruction's part of the tile lies behind its start, in 16 bytes.

        It begins at the elements `x` and `k`: integers, arrays or expressions. See `misfit`.
        """
        row, column = (x, k) if is_k_last else (k, x)
        chunk = column * self.bits // CHUNK_BITS
        per_box = self.span // UNIT
        return chunk // per_box * (self.box_bytes // UNIT) + (row * per_box + chunk % per_box)

    def misfit(self, x: int, k: int, *, is_k_last: bool) -> str | None:
        """Return why no instruction can begin at a multiple of `x` and of `k`, None if it can."""
        if is_k_last and x % PERIOD:
            return f"it begins at row {x}, which is no multiple of {PERIOD}"
        step = STEP if self.span > UNIT else UNIT  # without swizzle, chunks are boxes
        if is_k_last and k * self.bits % (step * 8):
            return f"it begins at column {k}, which is no multiple of {step} bytes"
        if not is_k_last and k % PERIOD:
            return f"it begins at row {k}, which is no multiple of {PERIOD}"
        if not is_k_last and x % self.span_elements:
            return f"it begins at column {x}, inside of a box of {self.span_elements} columns"
        return None


def boxed_operand(shape: Sequence[int], bits: int, span: int | None = None) -> Layout:
    """Return the layout of a shared tile that asynchronous MMAs read on their own.

    Boxes are 128, 64, 32 or 16 bytes wide. Element ``(i, j)`` is in box ``j // w`` of `w`
    elements a row, in its row `i`, and chunks of a row are exchanged as in `swizzled`. The
    layout serves both majors: descriptors differ.

    Parameters
    ----------
    shape
        Tile of rows and columns; leading dimensions stay outermost.
    bits
        Width of an element in memory.
    span
        Bytes of a row of a box; by default the most that divide the rows. See `box_spans`.

    Raises
    ------
    LayoutError
        If rows are no multiple of 16 bytes, or of `span`, or there is no multiple of 8 of them.

    Notes
    -----
    * ``operand_tile(boxed_operand(shape, bits), bits).layout()`` is it, less leading dimensions
    * it is bijective: no byte is unused
    """
    spans = box_spans(shape, bits)
    if span is not None and span not in spans:
        raise LayoutError(
            f"rows of {shape[-1]} elements of {bits} bits are no multiple of {span} bytes"
        )
    return _of_span(extents_of(shape), bits, spans[0] if span is None else span)


def box_spans(shape: Sequence[int], bits: int) -> tuple[int, ...]:
    """Return how wide boxes of a tile can be, in bytes, the widest first.

    Each divides the one before it, so whoever can begin at the borders of some boxes can
    begin at those of all narrower ones.

    Raises
    ------
    LayoutError
        If rows are no multiple of 16 bytes, or there is no multiple of 8 of them.
    """
    box = extents_of(shape)
    if len(box) < 2:
        raise LayoutError(f"an operand has rows and columns, got the shape {box}")
    if box[-2] % PERIOD:
        raise LayoutError(f"{box[-2]} rows are no multiple of {PERIOD}")
    if box[-1] * bits % CHUNK_BITS:
        raise LayoutError(f"rows of {box[-1]} elements of {bits} bits are no multiple of 16 bytes")
    return tuple(span for span in _SPANS if box[-1] * bits % (span * 8) == 0)


@lru_cache(maxsize=64)
def _of_span(shape: tuple[int, ...], bits: int, span: int) -> Layout:
    if span == UNIT:
        return packed_panels(shape, CHUNK_BITS // bits)
    return swizzled(shape, bits, Swizzle(span))


@lru_cache(maxsize=64)
def operand_tile(layout: Layout, bits: int) -> OperandTile:
    """Return how descriptors see a shared tile: all of its last two dimensions.

    A partial function: most layouts cannot be described.

    Parameters
    ----------
    layout
        Addresses in elements. Leading coordinates must move whole tiles, each to a multiple
        of the tile's alignment.
    bits
        Width of an element in memory.

    Raises
    ------
    LayoutError
        With the reason, if no descriptor finds the elements.
    """
    boxed_operand(layout.shape, bits)  # says what is wrong with the extents
    rows, columns = layout.shape[-2:]
    tiles = layout.linear_table().reshape(-1, rows, columns)
    offsets = tiles[:, 0, 0]
    first = tiles[0] - offsets[0]
    for span in _SPANS:
        if columns * bits % (span * 8):
            continue
        tile = OperandTile(rows, columns, bits, span)
        if not np.array_equal(first, tile.layout().linear_table()):
            continue
        if (tiles - offsets[:, None, None] != first).any():
            raise LayoutError("its versions are not stored alike")
        if (offsets * bits % (tile.alignment * 8)).any():
            raise LayoutError(f"a version begins at no multiple of {tile.alignment} bytes")
        return tile
    raise LayoutError(
        f"its {rows} rows of {columns * bits // 8} bytes are not stored in boxes of whole rows, "
        "128, 64, 32 or 16 bytes wide"
    )
