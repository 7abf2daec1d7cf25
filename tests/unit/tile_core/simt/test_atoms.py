"""Matrix instructions as data: their layouts are run on integers and held against the manual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.atoms import collect, defects, distribute
from tile_core.layout import Fragment
from tile_core.simt.atoms import MatrixAtom, atom_of_words
from tile_cuda.atoms import all_atoms, atoms_for, atoms_for_tiles
from tile_cuda.machine import ARCHITECTURES, machine

HALF = ("float16", "float16", "float32")


def half_atom() -> MatrixAtom:
    return atom_of_words("mma_m16n8k16", "mma_m16n8k16", (16, 8, 16), HALF)


@pytest.mark.parametrize("atom", all_atoms(), ids=lambda atom: atom.name.replace(" ", "/"))
def test_every_atom_multiplies(atom: MatrixAtom) -> None:
    assert defects(atom) == ()
    assert defects(atom, seed=1) == ()


def test_the_layouts_are_those_of_the_manual() -> None:
    # PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type":
    # row = groupID + 8 for a2, a3, a6, a7; column = threadID_in_group * 2 + (i & 1), + 8 from a4.
    atom = half_atom()
    for lane in range(32):
        group, inside = divmod(lane, 4)
        for i in range(8):
            row = group + 8 * (i % 4 >= 2)
            column = inside * 2 + i % 2 + 8 * (i >= 4)
            assert (atom.a.forward_thread(row, column), *atom.a.forward_index(row, column)) == (
                lane, i,
            )  # fmt: skip
        for i in range(4):
            k, n = inside * 2 + i % 2 + 8 * (i >= 2), group
            assert (atom.b.forward_thread(k, n), *atom.b.forward_index(k, n)) == (lane, i)
            row, column = group + 8 * (i >= 2), inside * 2 + i % 2
            assert (atom.c.forward_thread(row, column), *atom.c.forward_index(row, column)) == (
                lane, i,
            )  # fmt: skip


def test_bytes_run_along_words_first() -> None:
    # PTX ISA, mma.m16n8k32 with .s8: row = groupID + 8 for bytes 4-7 and 12-15, column =
    # threadID_in_group * 4 + (i & 3), + 16 from byte 8.
    atom = atom_of_words("mma_m16n8k32", "", (16, 8, 32), ("int8", "int8", "int32"))
    for lane in (0, 5, 18, 31):
        for i in range(16):
            row = lane // 4 + 8 * (i % 8 >= 4)
            column = lane % 4 * 4 + i % 4 + 16 * (i >= 8)
            assert atom.a.forward_thread(row, column) == lane
            assert atom.a.forward_index(row, column) == (i,)


def test_groups_of_volta_hold_what_the_manual_gives_them() -> None:
    # PTX ISA, mma.m8n8k4: within a group a thread below 16 holds rows 0-3 and columns 0-3 of
    # the factors; float32 sums are at row (t & 1) + (i & 2) + 4 * (t >= 16), column
    # (i & 4) + (t & 2) + (i & 1). Which of our 16 rows these are is the same for A and C.
    (atom,) = (a for a in atoms_for(machine("sm_70"), *HALF) if a.function == "mma_m8n8k4")
    rows = np.argwhere((atom.a.thread_table()[:, 0] == 1).any(axis=-1))
    assert rows.tolist() == [[1]]
    for thread in range(32):
        own_row = thread % 4 + 4 * (thread >= 16)
        (row,) = np.flatnonzero((atom.a.thread_table()[:, 0] == thread).any(axis=-1))
        assert own_row == row % 4 + row // 8 * 4
        for slot in range(8):
            held = (atom.c.thread_table()[..., 0] == thread) & (atom.c.slot_table() == slot)
            ((i, j),) = np.argwhere(held)
            assert i % 4 + i // 8 * 4 == (thread & 1) + (slot & 2) + 4 * (thread >= 16)
            assert j % 4 + j // 8 * 4 == (slot & 4) + (thread & 2) + (slot & 1)


def test_volta_reads_neighbours_whichever_way_factors_are_stored() -> None:
    # PTX ISA, mma.m8n8k4: four rows of A by columns, four columns of B by rows, of one k.
    found = {a.orders: a for a in atoms_for(machine("sm_70"), *HALF) if a.orders is not None}
    assert found.keys() == {(a, b) for a in ("row", "col") for b in ("row", "col")}
    for (a_order, b_order), atom in found.items():
        a, b = _elements_of(atom.a, 21), _elements_of(atom.b, 21)
        # Thread 21 is the second of the upper half of the second group: rows 12-15 of our 16
        # and columns 8-11, row and column 1 of them, or k = 1.
        along_k = [(13, k) for k in range(4)]
        assert a == (along_k if a_order == "row" else [(i, 1) for i in range(12, 16)])
        along_k = [(k, 9) for k in range(4)]
        assert b == (along_k if b_order == "col" else [(1, j) for j in range(8, 12)])


def _elements_of(fragment: Fragment, thread: int) -> list[tuple[int, ...]]:
    """Return the elements that a thread holds, in the order of its registers."""
    held = np.argwhere((fragment.thread_table() == thread).any(axis=-1))
    slots = fragment.slot_table()
    return [tuple(e) for e in sorted(held.tolist(), key=lambda e: slots[tuple(e)])]


def test_swapped_registers_are_found() -> None:
    atom = half_atom()
    columns_first = atom.a
    rows_first = Fragment(
        (16, 16),
        forward_thread_fn=columns_first.thread,
        forward_index_fn=lambda i, j: (i // 8 * 4 + j // 8 * 2 + j % 2,),
    )
    # A permutation of registers within a thread is sound as data: only the manual forbids it.
    assert defects(replace(atom, a=rows_first)) == ()
    assert rows_first != columns_first


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": Fragment((16, 16), lambda i, j: (i % 8 * 4 + j // 2 % 4, j % 2))}, "a leaves"),
        ({"b": Fragment((8, 8), lambda i, j: (i % 4 + j * 4, i // 4))}, "do not agree"),
        ({"c": half_atom().c.replicate(2)}, "two threads hold one sum"),
        ({"parts": (tuple(range(16)), tuple(range(16, 32)))}, "lacks an element"),
    ],
)
def test_unsound_atoms_are_found(change: dict[str, object], words: str) -> None:
    found = defects(replace(half_atom(), **change))  # type: ignore[arg-type]
    assert any(words in text for text in found), found


def test_replicas_that_differ_are_not_collected() -> None:
    fragment = Fragment((2,), lambda i, r: (i + 2 * r, 0), replicate=2)
    registers = distribute(fragment, [1.0, 2.0])
    assert collect(fragment, registers).tolist() == [1.0, 2.0]
    registers[3] = 5.0
    assert np.isnan(collect(fragment, registers)[1])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_machines_offer_only_what_they_have(arch: str) -> None:
    simt = machine(arch)
    for atom in all_atoms():
        types = (str(atom.a_dtype), str(atom.b_dtype), str(atom.c_dtype))
        assert (atom in atoms_for(simt, *types)) is simt.has(atom.feature)


def test_types_without_an_instruction_are_widened() -> None:
    def chosen(arch: str, *types: str) -> list[str]:
        return [atom.name for atom in atoms_for_tiles(machine(arch), *types)[:1]]

    fp8 = ("float8_e4m3fn", "float8_e5m2", "float32")
    assert chosen("sm_89", *fp8) == ["m16n8k32 float8_e4m3fn*float8_e5m2+float32"]
    assert chosen("sm_80", *fp8) == ["m16n8k16 float16*float16+float32"]
    assert chosen("sm_70", *fp8) == ["m16n16k4 float16*float16+float32"]
    assert chosen("sm_80", "bfloat16", "float4_e2m1fn", "float32") == [
        "m16n8k16 bfloat16*bfloat16+float32"
    ]
    assert chosen("sm_80", "int4", "uint4", "int32") == ["m16n8k32 int8*uint8+int32"]
    assert chosen("sm_80", "bfloat16", "float16", "float32") == []
    assert chosen("sm_80", "int16", "int16", "int32") == []
