"""Swizzles move 16-byte chunks and spread columns over banks; bank costs are what counting says."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.errors import LayoutError
from tile_core.layout import (
    Swizzle,
    bank_cost,
    byte_addresses,
    row_major,
    sectors,
    shared_operand,
    swizzled,
)
from tile_core.layout.swizzle import staged_rows

swizzles = st.sampled_from(list(Swizzle))
widths = st.sampled_from([4, 8, 16, 32, 64])


@st.composite
def tiles(draw):
    """A swizzle, an element width, and a shape it fits."""
    swizzle, bits = draw(swizzles), draw(widths)
    span = swizzle.value * 8 // bits
    rows = draw(st.sampled_from([4, 8, 16, 24]))
    lead = draw(st.sampled_from([(), (2,)]))
    return swizzle, bits, (*lead, rows, span * draw(st.integers(1, 3)))


@given(tiles())
def test_a_swizzle_moves_whole_chunks_inside_their_row(tile):
    swizzle, bits, shape = tile
    f = swizzled(shape, bits, swizzle)
    vector, span = 128 // bits, swizzle.value * 8 // bits
    assert f.is_injective()
    assert f.contiguity() % vector == 0
    assert f.vector_width(limit=vector) == vector
    lines = f.linear_table().reshape(*shape[:-1], -1, span)
    assert (lines // span == lines[..., :1] // span).all()  # a span of a row stays one span
    if shape[-2] % 8 == 0:
        assert f.is_bijective()
        assert f.inverse().compose(f).same_function(row_major(shape))


@given(st.sampled_from([8, 16, 32]), st.integers(1, 3))
def test_a_column_of_chunks_meets_every_bank_once_in_the_widest_swizzle(bits, spans):
    vector = 128 // bits
    f = swizzled((8, 8 * vector * spans), bits, Swizzle.FULL)
    rows = np.arange(8)
    for chunk in range(8 * spans):
        at = byte_addresses(f, (rows, np.full(8, chunk * vector)), bits)
        assert bank_cost(at, 16).conflicts == 0
        plain = byte_addresses(row_major(f.shape), (rows, np.full(8, chunk * vector)), bits)
        assert bank_cost(plain, 16).transactions == 8


@given(st.lists(st.integers(0, 255), min_size=1, max_size=32), st.sampled_from([1, 2, 4, 8, 16]))
def test_turns_are_the_busiest_bank_of_each_part(places, width):
    starts = np.array(places) * width
    size = 32 // max(1, width // 4)
    transactions = 0
    for first in range(0, len(places), size):
        words = {b // 4 for s in starts[first : first + size].tolist() for b in range(s, s + width)}
        transactions += max(Counter(w % 32 for w in words).values())
    cost = bank_cost(starts, width)
    assert cost.transactions == transactions
    assert 0 <= cost.conflicts < transactions


@given(st.lists(st.integers(0, 4095), min_size=1, max_size=32), st.sampled_from([1, 2, 4, 16]))
def test_sectors_count_what_is_touched(starts, width):
    assert sectors(starts, width) == len({b // 32 for s in starts for b in range(s, s + width)})


@given(st.integers(1, 5).map(lambda n: 8 * n), st.integers(1, 96), st.sampled_from([8, 16, 32]))
def test_an_operand_always_has_a_layout_with_padding(rows, cols, bits):
    f = shared_operand((rows, cols), bits)
    assert f.is_injective()
    assert f.shape == (rows, cols)


@given(
    st.sampled_from([8, 16, 32]), st.integers(1, 20), st.integers(1, 5), st.sampled_from([(), (2,)])
)
def test_staged_rows_are_written_by_columns_and_read_by_rows_without_waiting(
    bits, chunks, groups, lead
):
    vector, rows = 128 // bits, 8 * groups
    f = staged_rows((*lead, rows, chunks * vector), bits)
    assert f.is_bijective()
    assert f.vector_width(limit=vector) == vector
    first = [np.zeros(8, int)] * len(lead)
    for top, chunk in product(range(0, rows, 8), range(chunks)):
        at = byte_addresses(f, (*first, top + np.arange(8), np.full(8, chunk * vector)), bits)
        assert bank_cost(at, 16).conflicts == 0
    for start in range(0, rows * chunks, 8):
        row, chunk = np.divmod(start + np.arange(8), chunks)
        assert bank_cost(byte_addresses(f, (*first, row, chunk * vector), bits), 16).conflicts == 0


@given(st.sampled_from([1, 3, 4, 12]), st.integers(1, 20))
def test_staged_rows_of_any_number_keep_their_order(rows, chunks):
    f = staged_rows((rows, chunks * 8), 16)
    lines = f.linear_table()
    assert f.is_bijective()
    if rows % 8:
        assert (lines // (chunks * 8) == np.arange(rows)[:, None]).all()


def test_staged_rows_in_spans_of_a_swizzle_are_that_swizzle():
    for columns, swizzle in ((64, Swizzle.FULL), (192, Swizzle.FULL), (32, Swizzle.HALF)):
        assert staged_rows((16, columns), 16).same_function(swizzled((16, columns), 16, swizzle))
    with pytest.raises(LayoutError, match="no rows of whole 16-byte chunks"):
        staged_rows((16, 20), 16)
    with pytest.raises(LayoutError, match="no rows of whole 16-byte chunks"):
        staged_rows((64,), 16)
