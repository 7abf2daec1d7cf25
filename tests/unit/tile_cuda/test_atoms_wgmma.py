"""Instructions of warpgroups: fragments as the manual numbers their registers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.atoms import defects
from tile_core.layout import Fragment, fully_replicated
from tile_cuda.atoms import ROUNDS_FLOAT32
from tile_cuda.atoms_wgmma import WgmmaInstructions, all_wgmma, wgmma_for
from tile_cuda.machine import machine

ALL = tuple(all_wgmma())
HALF = WgmmaInstructions("float16", "float16", "float32", transposes=True)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("n", [8, 24, 64])
@pytest.mark.parametrize("product", ALL, ids=lambda p: f"{p.a}*{p.b}+{p.c}")
def test_registers_hold_what_the_instruction_multiplies(product: WgmmaInstructions, n: int) -> None:
    assert defects(product.atom(n)) == ()


def test_a_wrong_fragment_is_a_defect() -> None:
    atom = HALF.atom(16)
    turned = Fragment(atom.c.shape, lambda i, j: (i * 2 + j // 8, j % 8))
    wrong = replace(atom, c=replace_rows(atom.c))
    assert defects(replace(atom, c=turned)) == ()  # any bijection can be collected again
    assert defects(wrong) != ()
    assert defects(replace(atom, b=fully_replicated((16, 16), 64))) != ()


def replace_rows(c: Fragment) -> Fragment:
    """Return a fragment in which rows 0 and 8 have the same registers."""
    return Fragment(c.shape, lambda i, j: (c.forward_thread(i, j), c.slot_at(i // 16 * 16, j)))


@pytest.mark.parametrize("n", [8, 256])
def test_sums_are_numbered_as_in_the_manual(n: int) -> None:
    threads, slots = HALF.atom(n).c.thread_table()[..., 0], HALF.atom(n).c.slot_table()
    for thread in (0, 1, 5, 31, 32, 70, 127):
        warp, group, quad = thread // 32, thread % 32 // 4, thread % 4
        for d in range(n // 2):
            row, column = 16 * warp + group + d // 2 % 2 * 8, d // 4 * 8 + 2 * quad + d % 2
            assert (threads[row, column], slots[row, column]) == (thread, d)


@pytest.mark.parametrize(
    ("product", "per_word"),
    [(HALF, 2), (WgmmaInstructions("tfloat32", "tfloat32", "float32"), 1), (ALL[-1], 4)],
)
def test_the_first_factor_is_numbered_as_in_the_manual(
    product: WgmmaInstructions, per_word: int
) -> None:
    atom = product.atom(8)
    threads, slots = atom.a.thread_table()[..., 0], atom.a.slot_table()
    for thread in (0, 3, 6, 40, 127):
        warp, group, quad = thread // 32, thread % 32 // 4, thread % 4
        for slot in range(4 * per_word):
            word, part = divmod(slot, per_word)
            row = 16 * warp + group + word % 2 * 8
            column = word // 2 * 4 * per_word + quad * per_word + part
            assert (threads[row, column], slots[row, column]) == (thread, slot)


def test_sums_of_a_product_are_the_first_factor_of_the_next_in_pairs() -> None:
    sums = HALF.atom(64).c
    factor = HALF.atom(64).a.repeat((1, 4))
    assert sums.same_function(factor)


def test_one_wide_instruction_leaves_sums_where_several_narrow_ones_do() -> None:
    assert HALF.atom(96).c.same_function(HALF.atom(32).c.repeat((1, 3)))


def test_all_take_32_bytes_of_k() -> None:
    assert {(p.a, p.k) for p in ALL} == {
        *(("float16", 16), ("bfloat16", 16), ("tfloat32", 8), ("float32", 8)),
        *(("float8_e4m3fn", 32), ("float8_e5m2", 32), ("int8", 32), ("uint8", 32)),
    }
    assert {p.a for p in ALL if p.transposes} == {"float16", "bfloat16"}


def test_widths_of_instructions() -> None:
    integers = ALL[-1]
    assert HALF.sizes == tuple(np.arange(1, 33) * 8)
    assert len(integers.sizes) == 18
    assert 24 in integers.sizes
    assert 40 not in integers.sizes
    assert HALF.columns(512) == 256
    assert HALF.columns(320) == 160
    assert HALF.columns(320, 64) == 64
    assert HALF.columns(96, 64) == 96
    assert HALF.columns(12) is None
    assert HALF.columns(256, registers=170) == 256
    assert HALF.columns(256, registers=128) == 128  # 128 sums and 26 others are too many
    assert integers.columns(40) == 8
    assert integers.columns(72) == 24


def test_machines_and_types_without_them() -> None:
    hopper = machine("sm_90a")
    assert wgmma_for(hopper, "float16", "float16", "float32") == HALF
    assert wgmma_for(machine("sm_90"), "float16", "float16", "float32") is None
    assert wgmma_for(hopper, "float16", "bfloat16", "float32") is None
    assert wgmma_for(hopper, "float32", "float32", "float32") is None
    rounding = replace(hopper, features=hopper.features | {ROUNDS_FLOAT32})
    assert wgmma_for(rounding, "float32", "float32", "float32") is not None
