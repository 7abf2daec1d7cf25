"""Boxes lead to every element of a tile: each is written as the manual says that an engine does."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tile_core.errors import LayoutError
from tile_core.layout import Layout, boxed_operand, packed_panels, padded, row_major
from tile_core.layout.copy_engine_boxes import MOST, Boxes, boxes_of, layout_in_boxes

widths = st.sampled_from([8, 16, 32, 64])
leads = st.lists(st.sampled_from([1, 2, 3, 4, 7]), max_size=3).map(tuple)


@st.composite
def tiles(draw):
    """A layout that some operator may ask for, the width of elements, and what is copied."""
    bits = draw(widths)
    lead, rows = draw(leads), draw(st.sampled_from([1, 2, 3, 6, 8, 14, 16, 24]))
    columns = 128 // bits * draw(st.integers(1, 20))
    shape = (*lead, rows, columns)
    kind = draw(st.sampled_from(["rows", "boxes", "joined", "own"]))
    if kind == "rows":
        layout = row_major(shape)
    elif kind == "boxes":
        assume(rows % 8 == 0)
        layout = boxed_operand(shape, bits)
    elif kind == "joined":
        assume(math.prod(shape[:-1]) % 8 == 0)
        layout = boxed_operand((math.prod(shape[:-1]), columns), bits).reshape(shape)
    else:
        layout = layout_in_boxes(shape, bits, shape)
    extents = [draw(st.sampled_from([1, n])) for n in lead] + [rows, columns]
    return layout, bits, tuple(extents)


def written(boxes: Boxes, index: tuple[int, ...], first: int, bits: int) -> dict[tuple, int]:
    """Return where the engine puts each element of a box that begins at the element `first`.

    Rows follow each other in the order of their numbers, the last dimension fastest; bits 7 and
    up of an address decide how its bits 4 and up are changed.
    """
    found = {}
    row_bytes = boxes.box[-1] * bits // 8
    exchanged = {128: 7, 64: 3, 32: 1, 0: 0}[boxes.swizzle]
    corner = [k * size for k, size in zip(index, boxes.box, strict=True)]
    assert first * bits % (128 * 8) == 0
    for number, inside in enumerate(itertools.product(*map(range, boxes.box[:-1]))):
        for column in range(boxes.box[-1]):
            at = first * bits // 8 + number * row_bytes + column * bits // 8
            at ^= (at >> 7 & exchanged) << 4
            element = tuple(c + i for c, i in zip(corner, (*inside, column), strict=True))
            found[element] = at * 8 // bits
    return found


def all_written(boxes: Boxes, table: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the engine puts each element of a part, and where it should be."""
    found = np.full(table.shape, -1)
    for index in itertools.product(*map(range, boxes.parts)):
        lead = [k * size for k, size in zip(index[:-2], boxes.box[:-2], strict=True)]
        row, column = index[-2:]
        first = int(table[(*lead, 0, 0)])
        if boxes.begins_inside:
            first -= first % boxes.box[-1]
        first += row * boxes.row_step + column * boxes.column_step
        for element, at in written(boxes, index, first, bits).items():
            assert found[element] == -1
            found[element] = at
    return found, table


@settings(max_examples=40)
@given(tiles(), st.data())
def test_every_part_is_where_the_engine_puts_it(drawn, data):
    """Parts that begin at any multiple of a number along each dimension."""
    layout, bits, _ = drawn
    chunk = 128 // bits
    extents, starts, start = [], [], []
    for dim, room in enumerate(layout.shape):
        unit = chunk if dim == len(layout.shape) - 1 else 1
        extents.append(unit * data.draw(st.integers(1, room // unit)))
        step = unit * data.draw(st.sampled_from([1, 2, 4, 8]))
        starts.append(range(0, room - extents[-1] + 1, step))
        start.append(data.draw(st.sampled_from(starts[-1])))
    try:
        boxes = boxes_of(layout, bits, tuple(extents), tuple(starts))
    except LayoutError:
        return  # there is none: the copy engine cannot copy it
    here = tuple(slice(s, s + e) for s, e in zip(start, extents, strict=True))
    np.testing.assert_array_equal(*all_written(boxes, layout.linear_table()[here], bits))


@given(tiles(), st.data())
def test_every_element_is_where_the_engine_puts_it(drawn, data):
    layout, bits, extents = drawn
    try:
        boxes = boxes_of(layout, bits, extents)
    except LayoutError:
        assume(False)
        raise
    room = [n - e for n, e in zip(layout.shape, extents, strict=True)]
    start = [data.draw(st.integers(0, n)) for n in room]
    table = layout.linear_table()[
        tuple(slice(s, s + e) for s, e in zip(start, extents, strict=True))
    ]
    np.testing.assert_array_equal(*all_written(boxes, table, bits))
    assert boxes.count == math.prod(boxes.parts)


@given(tiles())
def test_the_driver_takes_such_boxes(drawn):
    layout, bits, extents = drawn
    try:
        boxes = boxes_of(layout, bits, extents)
    except LayoutError:
        assume(False)
        raise
    row_bytes = boxes.box[-1] * bits // 8
    assert all(1 <= size <= MOST for size in boxes.box)
    assert row_bytes % 16 == 0
    assert not boxes.swizzle or row_bytes == boxes.swizzle


@given(leads, st.sampled_from([8, 16, 24]), st.sampled_from([16, 32, 64, 128]))
def test_tiles_of_one_span_are_one_box(lead, rows, row_bytes):
    shape = (*lead, rows, row_bytes // 2)
    assert boxes_of(boxed_operand(shape, 16), 16).count == 1
    assert boxes_of(row_major(shape), 16).count == 1


@given(leads, st.sampled_from([8, 16, 24]), st.integers(1, 4))
def test_tiles_that_nobody_cares_about_are_a_box_for_each_span(lead, rows, spans):
    shape = (*lead, rows, 64 * spans)
    assert boxes_of(layout_in_boxes(shape, 16, shape), 16).count == spans


@given(leads, st.sampled_from([2, 6, 8, 14, 16]), st.integers(1, 4))
def test_others_may_copy_less_of_such_tiles(lead, rows, spans):
    """Each copy of a tile has a say in its layout, and none knows of the others."""
    shape = (*lead, rows, 64 * spans)
    one = (*(1 for _ in lead), rows, 64 * spans)
    if rows % 8:
        assert layout_in_boxes(shape, 16, shape) == row_major(shape)
    else:
        boxes = boxes_of(layout_in_boxes(shape, 16, shape), 16, one)
        assert boxes.count == spans


CASES = {
    "rows and columns": (boxed_operand((128, 64), 16), None, (128, 64), (1, 1)),
    "several spans": (boxed_operand((128, 256), 16), None, (128, 64), (1, 4)),
    "many rows": (boxed_operand((512, 64), 16), None, (256, 64), (2, 1)),
    "a stage of a ring": (boxed_operand((3, 4, 16, 64), 16), (1, 4, 16, 64), (1, 4, 16, 64), 1),
    "images of 14 x 14": (
        boxed_operand((4 * 14 * 14, 64), 16).reshape((4, 14, 14, 64)), None, (4, 14, 14, 64), 1,
    ),
    "spans apart in each image": (boxed_operand((4, 16, 128), 16), None, (1, 16, 64), (4, 1, 2)),
    "spans apart": (
        boxed_operand((64, 128), 16).reshape((4, 16, 128)), None, (4, 16, 64), (1, 1, 2),
    ),
    "rows in order": (row_major((2, 5, 8)), None, (2, 5, 8), 1),
    "more images than a box has": (row_major((300, 8, 8)), None, (150, 8, 8), (2, 1, 1)),
    "images that begin with the pattern": (
        boxed_operand((300 * 14, 64), 16).reshape((300, 14, 64)), None, (100, 14, 64), (3, 1, 1),
    ),
    "one long row": (row_major((1, 1024)), None, (1, 256), (1, 4)),
    "half of the rows": (boxed_operand((2, 64, 64), 16), (2, 32, 64), (1, 32, 64), (2, 1, 1)),
    "padding between images": (
        Layout((4, 8, 64), lambda i, j, k: (i, j * 64 + k), (4, 1024)), None, (1, 8, 64), (4, 1, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_boxes_are_few(name):
    layout, extents, box, parts = CASES[name]
    boxes = boxes_of(layout, 16, extents)
    assert boxes.box == box
    assert boxes.parts == ((1,) * len(box) if parts == 1 else parts)


REFUSED = {
    "rows of 24 bytes": (row_major((8, 12)), None, "12 elements are no multiple of 16 bytes"),
    "long rows": (row_major((8, 304)), None, "longer than the 256 of a box"),
    "part of a row": (row_major((8, 64)), (8, 32), "a part of its rows is copied"),
    "padded rows": (padded((16, 64), 8), None, "not stored in boxes"),
    "between patterns": (
        boxed_operand((56, 64), 16).reshape((4, 14, 64)), (1, 14, 64), "14 rows are no multiple",
    ),
    "beside 128 bytes": (row_major((4, 3, 8)), (1, 3, 8), "begin at multiples of 128 bytes"),
    "a prime number of rows": (row_major((514, 8)), None, "begin at multiples of 128 bytes"),
    "panels along rows": (packed_panels((16, 64), 8, 2), None, "not stored in boxes"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_made_of_boxes_has_a_reason(name):
    layout, extents, why = REFUSED[name]
    with pytest.raises(LayoutError, match=why):
        boxes_of(layout, 16, extents)
