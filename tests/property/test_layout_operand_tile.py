"""Descriptors lead to every element of a tile: each address is decoded as the manual says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.errors import LayoutError
from tile_core.layout import (
    Layout,
    OperandWalk,
    boxed_operand,
    operand_tile,
    padded,
    row_major,
    shared_operand,
)

widths = st.sampled_from([8, 16, 32])


@st.composite
def tiles(draw, bits=widths):
    """The shape of a tile, and the width of its elements."""
    width = draw(bits)
    rows = 8 * draw(st.integers(1, 8))
    columns = 128 // width * draw(st.integers(1, 20))
    lead = draw(st.sampled_from([(), (3,), (2, 2)]))
    return (*lead, rows, columns), width


def decoded(walk: OperandWalk, start: int, x: int, k_byte: int, bits: int, is_k_major: bool) -> int:
    """Return the byte address that the hardware finds element `x`, byte `k_byte` of K, at.

    Written from the manual's canonical layouts, in units of 16 bytes, for K-major and MN-major
    operands; what is swizzled are the bits of the final address.
    """
    if is_k_major:
        if walk.swizzle:
            at = start + x // 8 * walk.stride + x % 8 * walk.swizzle + k_byte
        else:
            at = start + x // 8 * walk.stride + k_byte // 16 * walk.leading
            at += x % 8 * 16 + k_byte % 16
    else:
        k, x_byte = k_byte * 8 // bits, x * bits // 8
        if walk.swizzle:
            at = start + x_byte // walk.swizzle * walk.leading + x_byte % walk.swizzle
            at += k // 8 * walk.stride + k % 8 * walk.swizzle
        else:
            at = start + x_byte // 16 * walk.stride + k // 8 * walk.leading
            at += k % 8 * 16 + x_byte % 16
    exchanged = {128: 7, 64: 3, 32: 1, 0: 0}[walk.swizzle]
    return at ^ (at >> 7 & exchanged) << 4


@given(tiles())
def test_every_element_of_a_k_major_operand_is_found(drawn):
    shape, bits = drawn
    layout = boxed_operand(shape, bits)
    tile = operand_tile(layout, bits)
    walk = tile.walk(is_k_last=True)
    table = layout.linear_table()[(0,) * (len(shape) - 2)] * bits // 8
    step = 256 // bits
    for first in range(0, shape[-2], 8):
        for k in range(0, shape[-1] // step * step, step):
            assert tile.misfit(first, k, is_k_last=True) is None
            start = int(tile.units(first, k, is_k_last=True)) * 16
            for x in range(8):
                for kk in range(step):
                    found = decoded(walk, start, x, kk * bits // 8, bits, True)
                    assert found == table[first + x, k + kk]


@given(tiles(st.just(16)))
def test_every_element_of_an_mn_major_operand_is_found(drawn):
    shape, bits = drawn
    layout = boxed_operand(shape, bits)
    tile = operand_tile(layout, bits)
    walk = tile.walk(is_k_last=False)
    table = layout.linear_table()[(0,) * (len(shape) - 2)] * 2
    for k in range(0, shape[-2] // 16 * 16, 16):
        for first in range(0, shape[-1], tile.span_elements):
            assert tile.misfit(first, k, is_k_last=False) is None
            start = int(tile.units(first, k, is_k_last=False)) * 16
            for x in range(0, shape[-1] - first):
                for kk in (0, 1, 7, 8, 15):
                    assert decoded(walk, start, x, 2 * kk, 16, False) == table[k + kk, first + x]


@given(tiles())
def test_the_layout_is_a_law_of_its_own_tile(drawn):
    shape, bits = drawn
    layout = boxed_operand(shape, bits)
    tile = operand_tile(layout, bits)
    assert layout.is_bijective()
    assert (tile.rows, tile.columns) == shape[-2:]
    assert tile.layout().same_function(boxed_operand(shape[-2:], bits))
    assert shape[-1] * bits // 8 % tile.span == 0
    assert layout.vector_width(-1, 128 // bits) == 128 // bits  # chunks stay together
    versions = layout.linear_table().reshape(-1, *shape[-2:])
    apart = (versions - versions[0])[:, 0, 0] * bits // 8
    assert (apart % tile.alignment == 0).all()


@given(tiles())
def test_it_is_the_swizzle_that_warps_read_too(drawn):
    shape, bits = drawn
    if shape[-1] * bits % 256 == 0:
        assert boxed_operand(shape, bits).same_function(shared_operand(shape, bits))


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (row_major((12, 64)), "12 rows are no multiple of 8"),
        (row_major((16, 12)), "rows of 12 elements of 16 bits are no multiple of 16 bytes"),
        (row_major((64,)), r"an operand has rows and columns, got the shape \(64,\)"),
        (row_major((16, 64)), "its 16 rows of 128 bytes are not stored in boxes of whole rows"),
        (padded((16, 64), 8), "not stored in boxes"),
        (
            Layout((2, 8, 8), lambda v, i, j: (v, i * 8 + (j + v) % 8)),
            "its versions are not stored alike",
        ),
        (
            Layout((2, 8, 8), lambda v, i, j: (v, i * 8 + j), (2, 72)),
            "a version begins at no multiple of 128 bytes",
        ),
    ],
)
def test_layouts_that_no_descriptor_describes(layout, words):
    with pytest.raises(LayoutError, match=words):
        operand_tile(layout, 16)


def test_rows_of_16_bytes_are_boxes_as_they_are():
    tile = operand_tile(row_major((32, 8)), 16)
    assert tile.span == 16
    assert tile.walk(is_k_last=True) == OperandWalk(0, 512, 128)
    assert tile.walk(is_k_last=False) == OperandWalk(0, 128, 512)


def test_distances_of_the_tiles_that_products_are_made_of():
    a, b = (operand_tile(boxed_operand(s, 16), 16) for s in ((128, 64), (64, 256)))
    assert a.walk(is_k_last=True) == OperandWalk(128, 16, 1024)
    assert b.walk(is_k_last=False) == OperandWalk(128, 8192, 1024)
    assert [a.units(64, 16 * k, is_k_last=True) for k in range(4)] == [512, 514, 516, 518]
    assert [b.units(0, 16 * k, is_k_last=False) for k in range(4)] == [0, 128, 256, 384]


def test_places_where_no_instruction_can_begin():
    tile = operand_tile(boxed_operand((64, 128), 16), 16)
    assert tile.misfit(4, 0, is_k_last=True) == "it begins at row 4, which is no multiple of 8"
    assert tile.misfit(0, 8, is_k_last=True) == (
        "it begins at column 8, which is no multiple of 32 bytes"
    )
    assert tile.misfit(0, 4, is_k_last=False) == "it begins at row 4, which is no multiple of 8"
    assert tile.misfit(32, 0, is_k_last=False) == (
        "it begins at column 32, inside of a box of 64 columns"
    )


def test_units_are_computed_on_arrays_too():
    tile = operand_tile(boxed_operand((16, 128), 16), 16)
    assert np.array_equal(
        tile.units(np.array([0, 8]), np.array([64, 80]), is_k_last=True), [128, 194]
    )
