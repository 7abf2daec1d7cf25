"""Shared tiles cut into boxes of tensors, as an engine that copies them writes each.

The copy engine puts the rows of a box one after the other, whatever dimensions number them, and may
exchange chunks of 16 bytes within rows of 128, 64 or 32 bytes by what their address is. Rows may
be wider where nothing is exchanged. PTX ISA, "Tensor data layout", "Swizzling modes".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np

from tile_core.errors import LayoutError
from tile_core.layout.constructors import row_major
from tile_core.layout.index_tables import Table
from tile_core.layout.layout import Layout
from tile_core.layout.operand_tile import box_spans, boxed_operand, operand_tile
from tile_core.layout.swizzle import CHUNK_BITS, PERIOD, Swizzle, swizzled
from tile_core.records import dataclass

MOST = 256
"""Elements of a box along one dimension."""

START = 128
"""Bytes that the places of boxes in shared memory are multiples of."""


Starts = tuple[range, ...]
"""Coordinates at which a part of a tile may begin, along each dimension."""

Part = tuple[tuple[int, ...], Starts]
"""Extents of a part of a tile, and where it may begin."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """How a part of a tile is cut into boxes that are copied one by one."""

    swizzle: int  # bytes in which chunks of a row change places, 0 for none
    box: tuple[int, ...]  # elements of one box, along each dimension of the tile
    parts: tuple[int, ...]  # boxes along each dimension
    # row_step, column_step: elements of memory from one box to the next along the last two
    # dimensions, 0 where there is one. Along others, the layout itself says how far it is.
    row_step: int
    column_step: int
    # A box may begin with any row of the pattern by which chunks change places. It then begins in
    # memory where its first row does, though another chunk than its first may lie there.
    begins_inside: bool = False

    @property
    def count(self) -> int:
        """Number of boxes."""
        return math.prod(self.parts)


@lru_cache(maxsize=128)
def boxes_of(
    layout: Layout, bits: int, extents: tuple[int, ...] | None = None, starts: Starts | None = None
) -> Boxes:
    """Return the boxes that make up a tile of `layout`: few of them, each as large as can be.

    Addresses of `layout` are in elements of `bits`; at address 0 the pattern of exchanged chunks
    begins. `extents` is what is copied, where that is not all of the tile, and `starts` where that
    may begin: by default at any coordinate of the leading dimensions, and at multiples of its rows
    and columns, and boxes begin with the pattern. Where it is given, they may begin inside of the
    pattern, and be single rows: every part is accepted that the copy engine can copy.

    Raises `LayoutError` with the reason, if the copy engine cannot write the tile.

    Notes
    -----
    * every element is in one box, at the place where the copy engine puts it
    * boxes begin at multiples of 128 bytes

    These are tested in tests/property/test_layout_engine_boxes.py.

    Examples
    --------
    >>> from tile_core.layout import boxed_operand
    >>> boxes_of(boxed_operand((4, 16, 128), 16), 16).box
    (1, 16, 64)
    >>> boxes_of(boxed_operand((4, 16, 64), 16), 16).box
    (4, 16, 64)
    """
    part = layout.shape if extents is None else extents
    columns = part[-1]
    if columns * bits % CHUNK_BITS:
        raise LayoutError(f"its rows of {columns} elements are no multiple of 16 bytes")
    begins = _anywhere(layout.shape, part) if starts is None else starts
    by_rows: Boxes | None = None
    for boxes in _possible(layout.linear_table(), part, begins, bits):
        if starts is None and boxes.begins_inside:
            continue
        if len(part) < 2 or boxes.box[-2] != 1 or part[-2] == 1:
            return boxes
        by_rows = by_rows or boxes
    if starts is None:  # a box for each row is too many where tiles may be stored otherwise
        raise LayoutError(_why_none(layout, part, bits))
    if by_rows is None or by_rows.count > MOST:
        raise LayoutError(_why_no_part(layout, part, bits, by_rows))
    return by_rows


def _possible(table: Table, part: tuple[int, ...], begins: Starts, bits: int) -> Iterator[Boxes]:
    """Yield the boxes that a part may be made of, the largest first."""
    for width, swizzle in _widths(part[-1], bits):
        one = (1,) * (len(part) - 1) + (width,)
        rows = _Rows(table, bits, swizzle)
        for box in rows.grown(part, begins, one):
            boxes = rows.everywhere(part, begins, box)
            if boxes is not None:
                yield boxes


def _anywhere(shape: Sequence[int], part: Sequence[int]) -> Starts:
    last = len(shape) - 2
    return tuple(
        range(0, extent - copied + 1, copied if dim >= last else 1)
        for dim, (extent, copied) in enumerate(zip(shape, part, strict=True))
    )


def _why_none(layout: Layout, part: tuple[int, ...], bits: int) -> str:
    if layout.same_function(row_major(layout.shape)):
        if part[-1] != layout.shape[-1] and math.prod(part[:-1]) > 1:
            return "a part of its rows is copied, and they follow each other"
        if part[-1] > MOST:
            return f"its rows of {part[-1]} elements are longer than the {MOST} of a box"
    elif len(layout.shape) > 1:
        try:
            operand_tile(layout, bits)
        except LayoutError as reason:
            return reason.message
    return f"it is not made of boxes that begin at multiples of {START} bytes"


def _why_no_part(layout: Layout, part: tuple[int, ...], bits: int, by_rows: Boxes | None) -> str:
    if by_rows is not None:
        return f"it takes {by_rows.count} boxes of a row each, more than {MOST}"
    with suppress(LayoutError):
        span = operand_tile(layout, bits).span
        if part[-1] * bits % (span * 8):
            nbytes = part[-1] * bits // 8
            return f"rows of {nbytes} bytes are parts of the {span} in which chunks change places"
    return f"parts of it begin at no multiples of {START} bytes"


def layout_in_boxes(shape: Sequence[int], bits: int, extents: Sequence[int]) -> Layout:
    """Return the layout for a tile of which the copy engine copies parts, and nobody else cares.

    Chunks are exchanged within the widest rows, as in `boxed_operand`. Dimensions that are
    copied as a whole number rows together, so that one box has them all; others stay outermost.
    Rows follow each other where chunks cannot be exchanged.

    A part of `extents` is copied at a time.
    """
    return _in_boxes(tuple(shape), bits, tuple(extents))


@lru_cache(maxsize=128)
def _in_boxes(shape: tuple[int, ...], bits: int, extents: tuple[int, ...]) -> Layout:
    found: list[tuple[int, Layout]] = []
    for layout in _candidates(shape, bits, extents):
        with suppress(LayoutError):
            found.append((boxes_of(layout, bits, extents).count, layout))
    return min(found, key=lambda pair: pair[0])[1] if found else row_major(shape)


def layout_for_parts(shape: Sequence[int], bits: int, parts: Sequence[Part]) -> Layout:
    """Return the layout for a tile of which the copy engine copies `parts`, and nobody else cares.

    Chunks are exchanged within the widest rows that leave each part whole boxes. Rows follow
    each other where chunks cannot be exchanged, or no layout suits all parts.
    """
    with suppress(LayoutError):
        for span in box_spans(shape, bits):
            layout = boxed_operand(shape, bits, span)
            if suits(layout, bits, parts):
                return layout
    return row_major(shape)


def suits(layout: Layout, bits: int, parts: Sequence[Part]) -> bool:
    """Whether the copy engine can copy each of `parts` of a tile of `layout`."""
    try:
        return all(boxes_of(layout, bits, extents, starts).count for extents, starts in parts)
    except LayoutError:
        return False


def _candidates(shape: tuple[int, ...], bits: int, extents: Sequence[int]) -> Iterator[Layout]:
    """Yield layouts with chunks exchanged: of rows and columns, and of all rows together.

    In both, groups of rows begin with the pattern wherever they are: others may copy less at a
    time.
    """
    try:
        yield boxed_operand(shape, bits)
    except LayoutError:
        return
    first = max(0, len(shape) - 2)
    while first and shape[first - 1] == extents[first - 1]:
        first -= 1
    inner = shape[first:]
    if len(inner) > 2:
        rows = boxed_operand((math.prod(inner[:-1]), inner[-1]), bits)
        yield rows.reshape(inner).expand(shape[:first])


def _widths(columns: int, bits: int) -> Iterator[tuple[int, int]]:
    """Yield how wide rows of boxes may be, in elements, and in what bytes chunks are exchanged."""
    width = next(w for w in _divisors(columns) if w * bits % CHUNK_BITS == 0)
    yield width, 0
    for swizzle in (Swizzle.FULL, Swizzle.HALF, Swizzle.QUARTER):
        span = swizzle.value * 8 // bits
        if columns % span == 0:
            yield span, swizzle.value
    if width * bits != CHUNK_BITS:
        yield CHUNK_BITS // bits, 0


def _divisors(extent: int) -> list[int]:
    """Return what a box may have of `extent`, the largest first."""
    return [n for n in range(min(extent, MOST), 0, -1) if extent % n == 0]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A tile in memory, and in what bytes of its rows chunks would be exchanged."""

    table: Table  # address of each element, in elements of `bits` bits
    bits: int
    swizzle: int  # bytes in which chunks of a row change places, 0 for none

    def grown(
        self, part: Sequence[int], begins: Starts, box: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        """Yield boxes of whole rows that the part begins with as the copy engine writes them.

        Larger ones come first. Rows of another dimension follow where a box has all of the last.
        """
        first, shape = tuple(begin.start for begin in begins), self.table.shape
        dim = next((d for d in reversed(range(len(box) - 1)) if box[d] != shape[d]), None)
        for size in [] if dim is None else _divisors(part[dim]):
            if dim is None or size == 1:
                break
            larger = (*box[:dim], size, *box[dim + 1 :])
            if self.phase(first, larger) is None:
                continue
            if size == shape[dim]:
                yield from self.grown(part, begins, larger)
            else:
                yield larger
        yield box

    def everywhere(self, part: Sequence[int], begins: Starts, box: tuple[int, ...]) -> Boxes | None:
        """Return the boxes by which the part can be copied wherever it may begin, if it can."""
        dims = list(zip(begins, part, box, strict=True))
        corners = [
            sorted({b + k for b in begin for k in range(0, n, size)}) for begin, n, size in dims
        ]
        phases = set()
        for corner in itertools.product(*corners):
            phase = self.phase(corner, box)
            if phase is None or self.row(corner, box) * self.bits % (START * 8):
                return None
            phases.add(phase)
        row_step = column_step = 0
        for dim in range(-min(2, len(box)), 0):
            begin, copied, size = dims[dim]
            before = sorted({b + k for b in begin for k in range(0, copied - size, size)})
            apart = {
                self.row(after, box) - self.row(corner, box)
                for corner in itertools.product(*corners[:dim], before, *corners[dim:][1:])
                for after in [(*corner[:dim], corner[dim] + size, *corner[dim:][1:])]
            }
            if len(apart) > 1:
                return None
            row_step, column_step = column_step, apart.pop() if apart else 0
        parts = tuple(copied // size for _, copied, size in dims)
        return Boxes(self.swizzle, box, parts, row_step, column_step, phases != {0})

    def row(self, corner: tuple[int, ...], box: tuple[int, ...]) -> int:
        """Return where the first row of a box begins, whichever of its chunks lies there."""
        first = int(self.table[corner])
        return first - first % box[-1] if self.swizzle else first

    def phase(self, corner: tuple[int, ...], box: tuple[int, ...]) -> int | None:
        """Return with which row of the pattern a box begins; None if it is written otherwise."""
        found = self.table[tuple(slice(c, c + n) for c, n in zip(corner, box, strict=True))]
        rows, columns = math.prod(box[:-1]), box[-1]
        first = self.row(corner, box)
        phase = first // columns % PERIOD if self.swizzle else 0
        image = _image(phase + rows, columns, self.bits, self.swizzle)
        expected = image[phase:] - phase * columns
        return phase if np.array_equal(found.reshape(expected.shape) - first, expected) else None


@lru_cache(maxsize=128)
def _image(rows: int, columns: int, bits: int, swizzle: int) -> Table:
    """Return the addresses of a box's elements, whose pattern begins with it."""
    if not swizzle:
        return np.arange(rows * columns).reshape(rows, columns)
    whole = -(-rows // PERIOD) * PERIOD
    return swizzled((whole, columns), bits, Swizzle(swizzle)).linear_table()[:rows]
