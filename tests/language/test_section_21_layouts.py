"""Section 21: layouts, fragments, their names in TileLang, and pictures of them."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import FrontendValueError

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
