"""Fragments, swizzles and pictures: single facts and the texts of refusals."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from tile_core.errors import LayoutError
from tile_core.layout import (
    Fragment,
    Layout,
    Swizzle,
    bank_cost,
    byte_addresses,
    draw,
    fully_replicated,
    padded,
    row_major,
    sectors,
    shared_operand,
    svg,
    swizzled,
    widest_swizzle,
)

ATOM = Fragment((8, 8), lambda i, j: (4 * i + j // 2, j % 2))


def message(action):
    with pytest.raises(LayoutError) as caught:
        action()
    return str(caught.value)


class TestFragment:
    def test_accumulator_of_a_16_by_8_matrix_instruction(self):
        atom = ATOM.repeat((2, 1))
        assert repr(atom) == (
            "Fragment((16, 8), lambda i, j: (i % 8 * 4 + j // 2, i // 8 * 2 + j % 2))"
        )
        assert (atom.thread_extent, atom.slots) == (32, 4)
        assert (atom.owners(9, 3), atom.forward_index(9, 3)) == ((5,), (3,))

    def test_warps_first_along_rows(self):
        block = ATOM.repeat((2, 1)).repeat((2, 2), repeat_on_thread=True, lower_dim_first=False)
        assert block.owners(16, 0) == (32,)
        assert block.owners(0, 8) == (64,)
        assert block.thread_extent == 128

    def test_the_index_is_what_the_thread_leaves(self):
        assert Fragment((8, 8), forward_thread_fn=lambda i, j: 4 * i + j // 2) == ATOM
        ragged = Fragment((6, 8), forward_thread_fn=lambda i, j: (i * 8 + j) // 3)
        assert repr(ragged) == (
            "Fragment((6, 8), lambda i, j: ((i * 8 + j) // 3, (i * 8 + j) % 3))"
        )

    def test_a_row_operand_is_replicated_over_the_columns_of_warps(self):
        operand = ATOM.replicate(2)
        assert operand.owners(0, 0) == (0, 32)
        assert operand.covers(Fragment((8, 8), lambda i, j: (4 * i + j // 2, j % 2), threads=64))
        assert not ATOM.covers(operand)

    def test_idle_replicas_are_dropped(self):
        idle = Fragment((8,), forward_thread_fn=lambda i, rep: i * 4 + rep // 2 % 4, replicate=16)
        assert repr(idle.condense_replication()) == (
            "Fragment((8,), lambda i, rep: (i * 4 + rep, 0), replicate=4)"
        )

    def test_replicas_dropped_from_the_middle(self):
        idle = Fragment((2,), lambda i, rep: (rep % 2 + rep // 4 * 2 + i * 4, 0), replicate=8)
        assert repr(idle.condense_replication()) == (
            "Fragment((2,), lambda i, rep: (i * 4 + rep, 0), replicate=4)"
        )

    def test_the_inverse_finds_the_element(self):
        assert repr(ATOM.as_layout().inverse()) == (
            "Layout((32, 2), lambda i, j: (i // 4, i % 4 * 2 + j, 0))"
        )

    def test_more_threads_than_needed(self):
        few = Fragment((4,), forward_thread_fn=lambda i: i, threads=32)
        assert few.thread_extent == 32
        assert repr(few) == "Fragment((4,), lambda i: (i, 0), threads=32)"
        assert not few.is_fully_replicated()
        assert fully_replicated((4,), 32).covers(few)

    def test_colliding_elements_are_not_injective(self):
        assert not Fragment((8,), lambda i: (i // 2, 0)).is_injective()

    @pytest.mark.parametrize(
        ("action", "text"),
        [
            (lambda: Fragment((8,)), "a fragment takes either forward_fn or forward_thread_fn"),
            (
                lambda: Fragment((8,), lambda i: i),
                "forward_fn returns a thread and a register index, forward_thread_fn a thread",
            ),
            (
                lambda: Fragment((8,), lambda i, r: (i, r), replicate=2),
                "the register slot of an element does not depend on the replica",
            ),
            (
                lambda: Fragment((8, 8), forward_thread_fn=lambda i, j: (i + j) % 8),
                "no register index follows from the thread (i + j) % 8",
            ),
            (
                lambda: Fragment((8,), forward_thread_fn=lambda i: i % 4 + i // 2),
                "the digits used of i overlap",
            ),
            (
                lambda: Fragment((8,), forward_thread_fn=lambda i: i, threads=4),
                "the physical coordinates need (8,), which is not inside (4,)",
            ),
            (lambda: ATOM.repeat((2,)), "repeats (2,) do not suit a fragment of (8, 8)"),
            (lambda: ATOM.reshape((9, 7)), "a fragment of (8, 8) cannot be reshaped to (9, 7)"),
            (lambda: ATOM.owners(1), "1 coordinates given for a fragment of (8, 8)"),
            (lambda: ATOM.owners(1, 8), "coordinates (1, 8) are outside the fragment (8, 8)"),
        ],
    )
    def test_refusals(self, action, text):
        assert text in message(action)


class TestSwizzle:
    def test_the_patterns_of_the_three_widths(self):
        chunk_of_first = {
            swizzle: [
                int(swizzled((8, 64), 16, swizzle)(row, 0)[-1]) // 8 % swizzle.chunks
                for row in range(8)
            ]
            for swizzle in Swizzle
        }
        assert chunk_of_first == {
            Swizzle.FULL: [0, 1, 2, 3, 4, 5, 6, 7],
            Swizzle.HALF: [0, 0, 1, 1, 2, 2, 3, 3],
            Swizzle.QUARTER: [0, 0, 0, 0, 1, 1, 1, 1],
        }

    def test_reading_eight_rows_of_a_tile(self):
        lanes = np.arange(32)
        where = (lanes % 8, lanes // 8 * 8)  # 16-byte rows of four 8x8 matrices
        costs = {
            name: bank_cost(byte_addresses(layout, where, 16), 16)
            for name, layout in {
                "plain": row_major((64, 64)),
                "padded": padded((64, 64), 8),
                "swizzled": swizzled((64, 64), 16, Swizzle.FULL),
            }.items()
        }
        assert {name: cost.transactions for name, cost in costs.items()} == {
            "plain": 32,
            "padded": 4,
            "swizzled": 4,
        }
        assert costs["plain"].conflicts == 28
        assert costs["swizzled"].conflicts == 0

    def test_threads_that_share_a_word_do_not_conflict(self):
        assert bank_cost(np.zeros(32), 4).transactions == 1
        assert bank_cost(np.arange(32) * 128, 4).transactions == 32

    def test_sectors_of_a_coalesced_and_of_a_strided_access(self):
        assert sectors(np.arange(32) * 4, 4) == 4
        assert sectors(np.arange(32) * 128, 4) == 32

    def test_the_choice_for_a_matrix_operand(self):
        assert widest_swizzle(64, 16) is Swizzle.FULL
        assert widest_swizzle(32, 16) is Swizzle.HALF
        assert widest_swizzle(16, 16) is Swizzle.QUARTER
        assert widest_swizzle(24, 16) is None
        assert shared_operand((16, 64), 16) == swizzled((16, 64), 16, Swizzle.FULL)
        assert shared_operand((16, 24), 16) == row_major((16, 24))
        assert shared_operand((12, 64), 16) == padded((12, 64), 8)
        assert shared_operand((16, 24), 16, allow_pad=False) == row_major((16, 24))

    @pytest.mark.parametrize(
        ("action", "text"),
        [
            (lambda: swizzled((8, 24), 16, Swizzle.FULL), "no multiple of 128 bytes"),
            (
                lambda: swizzled((6, 64), 16, Swizzle.FULL),
                "6 rows are neither a multiple",
            ),
            (lambda: swizzled((64,), 16, Swizzle.FULL), "a swizzle needs rows and columns"),
            (lambda: swizzled((8, 64), 24, Swizzle.FULL), "24 bits do not fill 16-byte chunks"),
            (lambda: shared_operand((8, 20), 16, False), "no multiple of 16 bytes"),
            (lambda: bank_cost([0], 3), "no access is 3 bytes wide"),
            (lambda: bank_cost([2], 4), "an address is no multiple of the access width, 4 bytes"),
            (
                lambda: byte_addresses(row_major((4,)), [np.array([4])], 8),
                "coordinates of dimension 0 are outside 0 ... 3",
            ),
            (
                lambda: byte_addresses(row_major((4,)), [np.array([1])], 4),
                "elements of 4 bits do not start on whole bytes",
            ),
        ],
    )
    def test_refusals(self, action, text):
        assert text in message(action)


class TestPicture:
    def test_addresses(self):
        assert draw(Layout((2, 4), lambda i, j: (i, j ^ i))).splitlines() == [
            "  | 0 1 2 3",
            "--+--------",
            "0 | 0 1 2 3",
            "1 | 5 4 7 6",
        ]

    def test_threads_and_registers(self):
        tile = Fragment((2, 4), lambda i, j, rep: (j // 2 + 2 * rep, i * 2 + j % 2), replicate=2)
        assert draw(tile).splitlines() == [
            "  |       0       1       2       3",
            "--+--------------------------------",
            "0 | T0,2:r0 T0,2:r1 T1,3:r0 T1,3:r1",
            "1 | T0,2:r2 T0,2:r3 T1,3:r2 T1,3:r3",
        ]

    def test_what_is_beyond_the_limits_is_dots(self):
        assert draw(row_major((3, 40)), max_rows=2, max_columns=3).splitlines() == [
            "  |  0  1  2",
            "--+------------",
            "0 |  0  1  2  …",
            "1 | 40 41 42  …",
            "  |  …  …  …  …",
        ]

    def test_one_grid_per_leading_coordinate_and_vectors_as_one_row(self):
        assert draw(row_major((2, 1, 2))).splitlines() == [
            "[0, :, :]",
            "  | 0 1",
            "--+----",
            "0 | 0 1",
            "",
            "[1, :, :]",
            "  | 0 1",
            "--+----",
            "0 | 2 3",
        ]
        assert draw(row_major((3,))).splitlines()[-1] == "0 | 0 1 2"

    def test_svg_is_well_formed_and_has_one_coloured_cell_per_element(self):
        root = ElementTree.fromstring(svg(ATOM))
        space = "{http://www.w3.org/2000/svg}"
        cells = root.findall(f"{space}rect")
        texts = [t.text for t in root.findall(f"{space}text")]
        assert len(cells) == 64
        assert texts == [f"T{4 * i + j // 2}:r{j % 2}" for i in range(8) for j in range(8)]
        assert cells[0].get("fill") == cells[1].get("fill") != cells[2].get("fill")

    def test_a_picture_in_two_parts(self, golden):
        golden(svg(Layout((2, 2, 3), lambda b, i, j: (b * 2 + i, j))))

    def test_a_huge_picture_is_refused(self):
        assert message(lambda: svg(row_major((256, 256)))) == (
            "[TL3001] a picture of 65536 cells is too large to be read\n"
            "hint: draw a slice of the layout, or raise max_cells"
        )
