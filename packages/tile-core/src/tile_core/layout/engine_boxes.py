"""Shared tiles cut into boxes of tensors, as an engine that copies them writes each.

The engine puts the rows of a box one after the other, whatever dimensions number them, and may
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
from tile_core.layout.function import Layout
from tile_core.layout.operand_tile import boxed_operand, operand_tile
from tile_core.layout.swizzle import CHUNK_BITS, PERIOD, Swizzle, swizzled
from tile_core.layout.table import Table
from tile_core.records import dataclass

MOST = 256
"""Elements of a box along one dimension."""

START = 128
"""Bytes that the places of boxes in shared memory are multiples of."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """How a part of a tile is cut into boxes that are copied one by one.

    Parameters
    ----------
    swizzle
        Bytes in which chunks of a row change places, 0 for none.
    box
        Elements of one box, along each dimension of the tile.
    parts
        Boxes along each dimension.
    row_step, column_step
        Elements of memory from one box to the next along the last two dimensions, 0 where there
        is one. Along others, the layout itself says how far it is.
    """

    swizzle: int
    box: tuple[int, ...]
    parts: tuple[int, ...]
    row_step: int
    column_step: int

    @property
    def count(self) -> int:
        """Number of boxes."""
        return math.prod(self.parts)


@lru_cache(maxsize=128)
def boxes_of(layout: Layout, bits: int, extents: tuple[int, ...] | None = None) -> Boxes:
    """Return the boxes that make up a tile of `layout`: few of them, each as large as can be.

    Parameters
    ----------
    layout
        Addresses in elements; address 0 is where the pattern of exchanged chunks begins.
    bits
        Width of an element in memory.
    extents
        What is copied, where that is not all of the tile. It may begin at any coordinate of the
        leading dimensions, and at multiples of its rows and columns.

    Raises
    ------
    LayoutError
        With the reason, if the engine cannot write the tile.

    Notes
    -----
    * every element is in one box, at the place where the engine puts it
    * boxes begin at multiples of 128 bytes, and where chunks are exchanged, with the pattern

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
    table = layout.linear_table()
    for width, swizzle in _widths(columns, bits):
        for box in _grown(table, part, (1,) * (len(part) - 1) + (width,), bits, swizzle):
            if len(box) > 1 and box[-2] == 1 < part[-2]:
                continue  # a box for each row is too many
            if _is_everywhere(table, part, box, bits, swizzle):
                return _boxes(table, part, box, swizzle)
    raise LayoutError(_why_none(layout, part, bits))


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


def layout_in_boxes(shape: Sequence[int], bits: int, extents: Sequence[int]) -> Layout:
    """Return the layout for a tile of which the engine copies parts, and nobody else cares.

    Chunks are exchanged within the widest rows, as in `boxed_operand`. Dimensions that are
    copied as a whole number rows together, so that one box has them all; others stay outermost.
    Rows follow each other where chunks cannot be exchanged.

    Parameters
    ----------
    shape
        Extents of the tile.
    extents
        What is copied at a time.
    """
    found: list[tuple[int, Layout]] = []
    for layout in _candidates(tuple(shape), bits, extents):
        with suppress(LayoutError):
            found.append((boxes_of(layout, bits, tuple(extents)).count, layout))
    return min(found, key=lambda pair: pair[0])[1] if found else row_major(shape)


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


def _grown(
    table: Table, part: Sequence[int], box: tuple[int, ...], bits: int, swizzle: int
) -> Iterator[tuple[int, ...]]:
    """Yield boxes of whole rows that the tile begins with as the engine writes them.

    Larger ones come first. Rows of another dimension follow where a box has all of the last.
    """
    dim = next((d for d in reversed(range(len(box) - 1)) if box[d] != table.shape[d]), None)
    for size in [] if dim is None else _divisors(part[dim]):
        if dim is None or size == 1:
            break
        larger = (*box[:dim], size, *box[dim + 1 :])
        if not _is_image(table, (0,) * len(box), larger, bits, swizzle):
            continue
        if size == table.shape[dim]:
            yield from _grown(table, part, larger, bits, swizzle)
        else:
            yield larger
    yield box


def _is_everywhere(
    table: Table, part: Sequence[int], box: tuple[int, ...], bits: int, swizzle: int
) -> bool:
    """Whether boxes can be copied wherever the part may begin."""
    granule = PERIOD * swizzle if swizzle else START
    corners = itertools.product(*_corners(table.shape, part, box))
    return all(
        int(table[corner]) * bits % (granule * 8) == 0
        and _is_image(table, corner, box, bits, swizzle)
        for corner in corners
    ) and _is_regular(table, box)


def _corners(shape: Sequence[int], part: Sequence[int], box: Sequence[int]) -> Iterator[range]:
    for dim, (extent, copied, size) in enumerate(zip(shape, part, box, strict=True)):
        anywhere = copied != extent and dim < len(shape) - 2
        yield range(0, extent - size + 1, 1 if anywhere else size)


def _is_image(
    table: Table, corner: tuple[int, ...], box: tuple[int, ...], bits: int, swizzle: int
) -> bool:
    """Whether the elements of a box are where the engine puts them."""
    found = table[tuple(slice(c, c + n) for c, n in zip(corner, box, strict=True))]
    expected = _image(math.prod(box[:-1]), box[-1], bits, swizzle)
    return bool(np.array_equal(found.reshape(expected.shape) - found.flat[0], expected))


@lru_cache(maxsize=128)
def _image(rows: int, columns: int, bits: int, swizzle: int) -> Table:
    """Return the addresses of a box's elements, whose pattern begins with it."""
    if not swizzle:
        return np.arange(rows * columns).reshape(rows, columns)
    whole = -(-rows // PERIOD) * PERIOD
    return swizzled((whole, columns), bits, Swizzle(swizzle)).linear_table()[:rows]


def _is_regular(table: Table, box: tuple[int, ...]) -> bool:
    """Whether boxes of the last two dimensions are equally far apart."""
    firsts = table[..., :: box[-1]] if len(box) < 2 else table[..., :: box[-2], :: box[-1]]
    return all(
        bool((steps == steps.flat[0]).all())
        for steps in (np.diff(firsts, axis=axis) for axis in range(-min(2, len(box)), 0))
        if steps.size
    )


def _boxes(table: Table, part: Sequence[int], box: tuple[int, ...], swizzle: int) -> Boxes:
    parts = tuple(copied // size for copied, size in zip(part, box, strict=True))
    steps = [0, 0]
    for dim in range(-min(2, len(box)), 0):
        if parts[dim] > 1:
            corner = [0] * len(box)
            corner[dim] = box[dim]
            steps[dim] = int(table[tuple(corner)] - table[(0,) * len(box)])
    return Boxes(swizzle, box, parts, *steps)
