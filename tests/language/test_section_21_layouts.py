"""Section 21: layouts, fragments, their names in TileLang, and pictures of them."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import FrontendValueError
from tile_core.layout import bank_cost
from tile_core.testing import build_ir as ir

SWAPPED = T.Layout((8, 4), lambda i, j: (j, i ^ (j % 2)))
QUADS = T.Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))


def test_names_of_layouts():
    assert SWAPPED.get_input_shape() == (8, 4)
    assert SWAPPED.get_output_shape() == (4, 8)
    assert len(SWAPPED.get_forward_vars()) == 2
    assert [str(e) for e in SWAPPED.get_forward_index()] == [str(e) for e in SWAPPED.index]
    assert SWAPPED.map_forward_index([6, 3]) == [3, 7]
    assert str(SWAPPED.get_linearized_forward_index()) == str(SWAPPED.linear_index_expr())
    assert SWAPPED.is_equal(T.Layout((8, 4), lambda i, j: (j, (j % 2) ^ i)))
    assert not SWAPPED.is_equal(T.Layout((8, 4), lambda i, j: (j, i)))
    assert SWAPPED.repeat(0, 2).get_input_shape() == (16, 4)
    assert SWAPPED.expand((3,)).get_input_shape() == (3, 8, 4)
    assert SWAPPED.inverse().map_forward_index([3, 7]) == [6, 3]


def test_names_of_fragments():
    assert QUADS.get_thread_size() == 32
    assert QUADS.get_output_shape() == (2,)
    assert QUADS.map_forward_thread([5, 3]) == 21
    assert QUADS.map_forward_index([5, 3]) == [1]
    twice = QUADS.replicate(2)
    assert twice.map_forward_thread([5, 3, 1]) == 53
    idle = T.Fragment((8,), lambda i, rep: (i + rep // 2 * 8, 0), replicate=4)
    assert idle.condense_rep_var().replication == 2
    assert QUADS.repeat((2, 1)).get_thread_size() == 32
    assert QUADS.repeat((2, 1), repeat_on_thread=True).get_thread_size() == 64
    assert QUADS.is_equal(tile.layout.make_gemm_fragment_8x8())
    assert not QUADS.is_equal(tile.layout.make_gemm_fragment_8x8_transposed())


def test_layouts_are_at_hand_in_three_places():
    assert tile.Layout is T.Layout is tile.layout.Layout
    assert tile.Fragment is T.Fragment is tile.layout.Fragment
    assert tile.layout.SwizzleMode.FULL.value == 128


ROWS_OF_128_BYTES = ir.shared("S", (64, 64), "float16")
ROWS_OF_64_BYTES = ir.shared("S", (64, 32), "float16")
ROWS_OF_32_BYTES = ir.shared("S", (64, 16), "float16")


@pytest.mark.parametrize(
    ("make", "buffer"),
    [
        (tile.layout.make_full_bank_swizzled_layout, ROWS_OF_128_BYTES),
        (tile.layout.make_half_bank_swizzled_layout, ROWS_OF_64_BYTES),
        (tile.layout.make_quarter_bank_swizzled_layout, ROWS_OF_32_BYTES),
        *(
            (make, buffer)
            for make in (
                tile.layout.make_swizzled_layout,
                tile.layout.make_mma_swizzle_layout,
                tile.layout.make_wgmma_swizzled_layout,
            )
            for buffer in (ROWS_OF_128_BYTES, ROWS_OF_64_BYTES, ROWS_OF_32_BYTES)
        ),
    ],
)
def test_eight_rows_are_read_at_once(make, buffer):
    layout = make(buffer)
    assert layout.is_bijective()
    rows, columns = layout.get_input_shape()
    for first in range(0, rows, 8):
        for column in range(0, columns, 8):
            places = [2 * layout.address(first + i, column) for i in range(8)]
            assert bank_cost(places, 16).conflicts == 0


def test_layouts_without_a_swizzle():
    for layout in (
        tile.layout.make_linear_layout(ROWS_OF_128_BYTES),
        tile.layout.make_mma_swizzle_layout(ROWS_OF_128_BYTES, is_smooth=True),
    ):
        assert layout.is_equal(T.Layout((64, 64), lambda i, j: (i, j)))
        assert bank_cost([2 * layout.address(i, 0) for i in range(8)], 16).transactions == 8


def test_a_tile_held_by_every_thread():
    everywhere = tile.layout.make_fully_replicated_layout_fragment(ROWS_OF_32_BYTES, 64)
    assert everywhere.get_thread_size() == 64
    assert everywhere.owners(63, 15) == tuple(range(64))
    assert everywhere.map_forward_index([2, 3]) == [35]


def test_rows_that_no_swizzle_suits_are_padded_unless_forbidden():
    odd = ir.shared("S", (12, 64), "float16")  # no multiple of eight rows
    assert tile.layout.make_swizzled_layout(odd).is_padded()
    assert not tile.layout.make_swizzled_layout(odd, allow_pad=False).is_padded()
    assert not tile.layout.make_wgmma_swizzled_layout(odd).is_padded()


def test_pictures_are_written(tmp_path, capsys):
    files = tile.tools.plot_layout(QUADS, tmp_path / "new", "quads", formats="all", verbose=True)
    assert [f.name for f in files] == ["quads.svg", "quads.txt"]
    assert files[0].read_text().startswith("<svg")
    assert "T21:r1" in files[1].read_text()
    assert "T21:r1" in capsys.readouterr().out


def test_other_formats_are_refused(tmp_path):
    with pytest.raises(FrontendValueError, match="not written as 'pdf'"):
        tile.tools.plot_layout(QUADS, tmp_path, formats=["svg", "pdf"])
    assert not list(tmp_path.iterdir())
