"""AMD's matrix instructions as data: run on integers, held against AMD's tables, and looked up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.atoms import defects
from tile_core.layout import Fragment
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.simt.atoms import MatrixAtom
from tile_core.simt.gemm_warp_partition import best_shared_first, tiling_of
from tile_hip.atoms import (
    ROUNDS_FLOAT32,
    MatrixInstruction,
    Pieces,
    all_atoms,
    all_instructions,
    atoms_in_runs,
    atoms_in_turns,
    atoms_like_accumulators,
    instructions_for,
)
from tile_hip.machine import ARCHITECTURES, machine

HALF = ("float16", "float16", "float32")
LANES = range(64)


def place(fragment: Fragment, *coords: int) -> tuple[int, int]:
    """Return lane and register of an element."""
    return int(fragment.forward_thread(*coords)), int(fragment.slot_at(*coords))


def named(atom: MatrixAtom) -> str:
    return f"{atom.function}<{atom.template[0]}>/{atom.name.replace(' ', '/')}"


@pytest.mark.parametrize("atom", all_atoms(), ids=named)
def test_every_atom_multiplies(atom: MatrixAtom) -> None:
    assert atom.threads == 64
    assert defects(atom) == ()


@pytest.mark.parametrize("pack", [1, 2])
def test_the_factors_of_32_rows_are_those_of_the_tables(pack: int) -> None:
    # AMD matrix instruction calculator, v_mfma_f32_32x32x8_f16: A[i][k] is in lane 32 * (k / 4)
    # + i, element k % 4. Several instructions take elements of one lane that follow each other.
    atom = next(a for a in atoms_in_runs(machine("gfx942"), *HALF) if a.template == (pack,))
    held = 4 * pack
    for lane in LANES:
        for element in range(held):
            k = lane // 32 * held + element
            assert place(atom.a, lane % 32, k) == (lane, element)
            assert place(atom.b, k, lane % 32) == (lane, element)


def test_sums_of_32_columns_are_those_of_the_tables_turned() -> None:
    # The calculator has D[i][j] of v_mfma_f32_32x32x8_f16 in lane j + 32 * (i / 4 % 2), register
    # 4 * (i / 8) + i % 4; with the factors exchanged i and j are too.
    (atom, *_) = atoms_in_runs(machine("gfx90a"), *HALF)
    for lane in LANES:
        for register in range(16):
            column = 8 * (register // 4) + 4 * (lane // 32) + register % 4
            assert place(atom.c, lane % 32, column) == (lane, register)


def test_sums_of_16_columns_are_those_of_the_tables_turned() -> None:
    atom = next(a for a in atoms_in_runs(machine("gfx942"), *HALF) if a.m == 16)
    for lane in LANES:
        for register in range(4):
            column = 4 * (lane // 16) + register
            assert place(atom.c, lane % 16, column) == (lane, register)


def test_doubles_are_held_one_by_one() -> None:
    # v_mfma_f64_16x16x4_f64: A[i][k] in lane 16 * k + i; D[i][j] in lane 16 * (i % 4) + j,
    # register i / 4, here turned.
    types = ("float64", "float64", "float64")
    atom = next(a for a in atoms_in_runs(machine("gfx90a"), *types) if a.template == (1,))
    for lane in LANES:
        assert place(atom.a, lane % 16, lane // 16) == (lane, 0)
        for register in range(4):
            assert place(atom.c, lane % 16, 4 * register + lane // 16) == (lane, register)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_lane_reads_sixteen_bytes_of_each_factor_at_once(arch: str) -> None:
    for i in all_instructions():
        if machine(arch).has(i.feature):
            types = (str(i.a), str(i.b), str(i.c))
            (first, *_) = atoms_in_runs(machine(arch), *types)
            assert first.a.slots * first.a_dtype.bits == 128
            assert first.b.slots * first.b_dtype.bits == 128


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_sum_is_a_factor_as_it_lies(arch: str) -> None:
    """The registers of columns of a sum are those of steps along K of the first factor."""
    for i in all_instructions():
        if not machine(arch).has(i.feature):
            continue
        for atom in atoms_like_accumulators(machine(arch), str(i.a), str(i.b), str(i.c)):
            width = max(atom.n, atom.k)
            total = atom.c.repeat((1, width // atom.n))
            assert atom.a.repeat((1, width // atom.k)).same_function(total)


@pytest.mark.parametrize(
    ("arch", "types", "function", "registers"),
    [
        ("gfx90a", ("float16", "float16", "float32"), "mma_32x32x8", "float16"),
        ("gfx942", ("bfloat16", "bfloat16", "float32"), "mma_32x32x8", "bfloat16"),
        ("gfx950", ("float16", "float16", "float32"), "mma_32x32x16", "float16"),
        ("gfx90a", ("int8", "int8", "int32"), "mma_32x32x8", "int8"),
        ("gfx942", ("int8", "int8", "int32"), "mma_32x32x16", "int8"),
        ("gfx950", ("int8", "int8", "int32"), "mma_32x32x32", "int8"),
        ("gfx90a", ("float32", "float32", "float32"), "mma_32x32x2", "float32"),
        ("gfx90a", ("tfloat32", "tfloat32", "float32"), "mma_32x32x2", "tfloat32"),
        ("gfx942", ("tfloat32", "tfloat32", "float32"), "mma_32x32x4", "tfloat32"),
        ("gfx942", ("float8_e4m3fnuz", "float8_e5m2fnuz", "float32"), "mma_32x32x16",
         "float8_e4m3fnuz"),
        ("gfx950", ("float8_e4m3fn", "float8_e5m2", "float32"), "mma_32x32x16", "float8_e4m3fn"),
        # Converted on their way into registers:
        ("gfx90a", ("float8_e4m3fnuz", "float8_e4m3fnuz", "float32"), "mma_32x32x8", "float16"),
        ("gfx942", ("float8_e4m3fn", "float8_e4m3fn", "float32"), "mma_32x32x8", "float16"),
        ("gfx942", ("float4_e2m1fn", "bfloat16", "float32"), "mma_32x32x8", "bfloat16"),
        ("gfx942", ("float16", "float32", "float32"), "mma_32x32x2", "float32"),
        ("gfx942", ("int4", "int8", "int32"), "mma_32x32x16", "int8"),
        ("gfx942", ("uint4", "int8", "int32"), "mma_32x32x16", "int8"),
    ],
)  # fmt: skip
def test_the_instruction_of_element_types(
    arch: str, types: tuple[str, str, str], function: str, registers: str
) -> None:
    (first, *_) = atoms_in_runs(machine(arch), *types)
    assert (first.function, str(first.a_dtype)) == (function, registers)


@pytest.mark.parametrize(
    "types", [("uint8", "int8", "int32"), ("float64", "float64", "float32"), ("int8",) * 3]
)
def test_products_without_an_instruction(types: tuple[str, str, str]) -> None:
    assert instructions_for(machine("gfx942"), *types) == ()


def test_only_who_may_round_rounds() -> None:
    types = ("float32", "float32", "float32")
    plain = machine("gfx942")
    allowed = replace(plain, features=plain.features | {ROUNDS_FLOAT32})
    assert {i.feature for i in instructions_for(plain, *types)} == {"mfma_f32"}
    assert instructions_for(allowed, *types)[0].feature == "mfma_xf32"


COUNTS = [(1, 2), (2, 1), (2, 2), (4, 1), (1, 4), (4, 4)]


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("instruction", all_instructions(), ids=lambda i: f"{i.a}/{i.edge}/{i.k}")
def test_every_atom_of_several_products_multiplies(
    instruction: MatrixInstruction, counts: tuple[int, int]
) -> None:
    rows, columns = counts
    for across in (False, True):
        pieces = Pieces((rows, across), (columns, not across))
        for run in (1, 2 * instruction.held):
            atom = instruction.atom(2, run, pieces)
            assert defects(atom) == ()
            assert (atom.m, atom.n) == (instruction.edge * rows, instruction.edge * columns)


def test_a_lane_has_neighbours_of_a_row_of_several_sums() -> None:
    pieces = Pieces(columns=(2, True))
    (atom, *_) = atoms_in_runs(machine("gfx942"), *HALF, pieces)
    assert atom.template == (2, 2, 1, 2)
    for lane in LANES:
        for register in range(8):  # eight columns side by side, of two products in turns
            assert place(atom.c, lane % 32, 8 * (lane // 32) + register) == (lane, register)
        k = 8 * (lane // 32) + 3
        assert [place(atom.b, k, 2 * (lane % 32) + x) for x in (0, 1)] == [(lane, 6), (lane, 7)]


def test_groups_of_lanes_take_turns_along_k() -> None:
    (atom, *_) = atoms_in_turns(machine("gfx942"), *HALF)
    assert [place(atom.a, 0, k) for k in range(4)] == [(0, 0), (32, 0), (0, 1), (32, 1)]


SQUARE, ROWS, COLUMNS = GemmWarpPolicy.Square, GemmWarpPolicy.FullRow, GemmWarpPolicy.FullCol


@pytest.mark.parametrize(
    ("mnk", "warps", "policy", "edge", "grid"),
    [
        ((128, 128, 32), 4, SQUARE, 32, (2, 2)),
        ((64, 64, 32), 4, SQUARE, 32, (2, 2)),
        ((64, 32, 32), 4, SQUARE, 16, (4, 1)),
        ((64, 64, 32), 4, ROWS, 16, (4, 1)),
        ((64, 64, 32), 4, COLUMNS, 16, (1, 4)),
        ((128, 64, 32), 4, ROWS, 32, (4, 1)),
        ((16, 128, 32), 4, SQUARE, 16, (1, 4)),
        ((48, 48, 32), 3, SQUARE, 16, (3, 1)),
    ],
)
def test_rows_of_an_instruction_are_as_many_as_waves_share_best(
    mnk: tuple[int, int, int],
    warps: int,
    policy: GemmWarpPolicy,
    edge: int,
    grid: tuple[int, int],
) -> None:
    atoms = best_shared_first(atoms_in_runs(machine("gfx942"), *HALF), mnk, warps, policy)
    tiling = tiling_of(atoms, mnk, warps, policy)
    assert tiling is not None
    assert (tiling.atom.m, tiling.m_warps, tiling.n_warps) == (edge, *grid)


@pytest.mark.parametrize("k", [8, 16, 24, 48])
def test_the_step_is_the_largest_that_divides_k(k: int) -> None:
    tiling = tiling_of(atoms_in_runs(machine("gfx942"), *HALF), (64, 64, k), 1, SQUARE)
    assert tiling is not None
    assert tiling.atom.k == (16 if k % 16 == 0 else 8)
    assert tiling.steps * tiling.atom.k == k
