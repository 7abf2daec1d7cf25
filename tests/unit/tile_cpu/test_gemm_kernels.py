"""Register-tiled products are exact on integers, at every edge, for every pair of types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.emulated_features import can_run, emulated_features
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.gemm.block_sizes import step_depth
from tile_cpu.gemm.instruction_kernel import MultiplyStep, choose_kernel
from tile_cpu.gemm.macrokernel import plan_gemm, plan_steps
from tile_cpu.gemm.operands import (
    Choice,
    Extent,
    GemmSpec,
    OperandA,
    StoreTo,
    copied_a,
    packed_b,
    start_from,
)
from tile_cpu.gemm.packing import emit_copy_rows, emit_pack_b
from tile_cpu.gemm.register_tile_shape import RegisterTile, Segment, choose_tile, row_segments
from tile_cpu.gemm.row_sums import emit_row_sums, row_sums
from tile_cpu.gemm.tile_loops import emit_tile_gemm
from tile_cpu.machine import MACHINES, host_machine, missing_features
from tile_cpu.tir.build import allocate, i32, loop, parameter, scratch, seq, splat
from tile_cpu.tir.nodes import BufferLoad, BufferStore, PrimFunc, tirx
from tile_cpu.toolchain import compile_module
from tile_cpu.vectors import Matrix, as_expr
from unit.tile_cpu.gemm_programs import Case, check, program

F32, F64, BF16, F16 = (
    ("float32",) * 3,
    ("float64",) * 3,
    ("bfloat16",) * 2 + ("float32",),
    ("float16",) * 3,
)
TYPES = [
    BF16,
    ("bfloat16",) * 3,
    ("float16", "float16", "float32"),
    F16,
    F64,
    ("float32", "float32", "float64"),
    ("float8_e4m3fn", "float8_e5m2", "float32"),
    ("int8", "int8", "int32"),
    ("uint8", "uint8", "int32"),
    ("int8", "uint8", "int32"),
    ("uint8", "int8", "int32"),
    ("int8", "int8", "int64"),
    ("int8", "int8", "float32"),
    ("uint8", "uint8", "uint8"),
    ("int16", "int16", "int32"),
    ("int32",) * 3,
    ("int64",) * 3,
]
RUNNABLE = [
    pytest.param(
        MACHINES[name],
        id=name,
        marks=pytest.mark.skipif(not can_run(MACHINES[name]), reason=f"this machine is no {name}"),
    )
    for name in ("x86-64-v2", "haswell", "skylake-avx512", "cascadelake", "alderlake")
]


def small(k: int, dtypes: tuple[str, str, str]) -> int:
    """Keep sums of 16-bit floats where every integer is exact."""
    return min(k, 14) if dtypes[2] in ("float16", "bfloat16") else k


@pytest.mark.in_turn(7)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (7, 7, 7), (5, 5, 0), (64, 128, 96), (33, 77, 55), (17, 1, 3), (40, 129, 300)],
)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_every_size(m: int, n: int, k: int, dynamic: bool) -> None:
    if dynamic and k == 0:
        pytest.skip("an empty tensor has no strides to bind k from")
    check(Case(m, n, k, dynamic=dynamic))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "trans", [(False, True), (True, False), (True, True)], ids=["nt", "tn", "tt"]
)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_transposed_operands(trans: tuple[bool, bool], dynamic: bool) -> None:
    check(Case(33, 77, 97, trans_a=trans[0], trans_b=trans[1], dynamic=dynamic))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7, 12, 16])
@pytest.mark.parametrize("trans_b", [False, True], ids=["nn", "nt"])
def test_few_rows(m: int, trans_b: bool) -> None:
    check(Case(m, 101, 70, block=(m, 64), trans_b=trans_b))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("block", [(3, 64), (16, 32)])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_dot_products_of_blocks_that_stick_out(block: tuple[int, int], dynamic: bool) -> None:
    check(Case(17, 45, 70, block=block, trans_b=True, dynamic=dynamic))
    check(Case(16, 32, 64, block=block, trans_b=True, dynamic=dynamic))


@pytest.mark.parametrize("dtypes", [BF16, F16, F64, ("int16", "int16", "int32")], ids="-".join)
def test_dot_products_of_many_rows_of_every_width(dtypes: tuple[str, str, str]) -> None:
    check(Case(9, 45, small(71, dtypes), (9, 32), dtypes, trans_b=True))


@pytest.mark.in_turn(10)
@pytest.mark.parametrize("dtypes", TYPES, ids="-".join)
@pytest.mark.parametrize(
    ("m", "trans"), [(33, (False, False)), (33, (True, True)), (1, (False, True))]
)
def test_every_type(dtypes: tuple[str, str, str], m: int, trans: tuple[bool, bool]) -> None:
    k = small(71, dtypes)
    check(Case(m, 77, k, (min(m, 32), 64), dtypes, trans_a=trans[0], trans_b=trans[1]))


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("dtypes", [BF16, ("int8", "int8", "int32"), F16], ids="-".join)
@pytest.mark.parametrize("trans", [(False, False), (True, False), (False, True)])
def test_whole_groups_and_dynamic(dtypes: tuple[str, str, str], trans: tuple[bool, bool]) -> None:
    k = small(192, dtypes)
    check(Case(64, 128, k, (32, 64), dtypes, trans_a=trans[0], trans_b=trans[1]))
    check(Case(31, 67, k - 1, (32, 64), dtypes, *trans, dynamic=True))


def test_c_is_added_to() -> None:
    check(Case(33, 77, 300, accumulate=True))
    check(Case(1, 40, 300, (1, 64), trans_b=True, accumulate=True))


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("machine", RUNNABLE)
@pytest.mark.parametrize(
    "dtypes", [F32, BF16, ("int8", "int8", "int32"), F64, ("uint8",) * 3], ids="-".join
)
def test_other_machines(machine, dtypes: tuple[str, str, str]) -> None:
    check(Case(33, 45, 51, dtypes=dtypes), machine)
    check(Case(32, 64, 64, dtypes=dtypes, trans_b=True), machine)
    check(Case(9, 21, 51, (12, 16), dtypes=dtypes, trans_b=True), machine)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("trans_b", [False, True], ids=["nn", "nt"])
def test_short_vectors_fetch_the_panels_that_are_packed_next(trans_b: bool) -> None:
    """Of this step of k, and behind its last panels those of the next step."""
    machine = MACHINES["haswell"]
    case = Case(64, 128, 600, (32, 64), trans_b=trans_b)
    assert "prefetcht1" in compile_module(program(case, machine), machine).asm()
    if not missing_features(machine):
        check(case, machine)
        check(Case(33, 77, 600, (32, 64), trans_b=trans_b), machine)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("dtypes", [F32, F64, F16, ("int32",) * 3], ids="-".join)
def test_panels_packed_by_the_product_of_their_first_rows(dtypes: tuple[str, str, str]) -> None:
    machine = replace(host_machine(), packs_in_kernel=True)
    k = small(300, dtypes)
    check(Case(64, 128, k, (32, 64), dtypes), machine)
    check(Case(66, 120, k, (33, 40), dtypes), machine)  # narrow panels, short register tiles
    check(Case(40, 64, k, (20, 64), dtypes, trans_a=True, accumulate=True), machine)
    check(Case(31, 67, k, (32, 64), dtypes), machine)  # what sticks out is packed before


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("dtypes", [F32, F64, BF16, ("int16", "int16", "int32")], ids="-".join)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_dot_products_of_pieces_of_rows(dtypes: tuple[str, str, str], dynamic: bool) -> None:
    machine = host_machine()
    steps = 2  # of a vector
    machine = replace(machine, dot_row_bytes=steps * machine.vector_bytes)
    for m, k in ((16, 128), (9, 71), (5, 7)):  # whole pieces, a tail, less than a vector
        case = Case(m, 45, small(k, dtypes), (m, 32), dtypes, trans_b=True, dynamic=dynamic)
        check(case, machine)
    check(Case(7, 45, small(71, dtypes), (7, 32), dtypes, trans_b=True, accumulate=True), machine)


@pytest.mark.parametrize("trans_b", [False, True], ids=["nn", "nt"])
def test_one_row_fetches_where_the_hardware_does_not(trans_b: bool) -> None:
    case = Case(1, 101, 400, block=(1, 64), trans_b=trans_b)
    machines = [replace(host_machine(), streams_unaided=unaided) for unaided in (False, True)]
    fetching, unaided = (program(case, m).script().count("llvm.prefetch") for m in machines)
    assert fetching > unaided  # which still fetches room for results
    for machine in machines:
        check(case, machine)


def test_who_packs_depends_on_the_machine() -> None:
    case, packing_loop = Case(64, 128, 300), "for q, c in"
    texts = {name: program(case, MACHINES[name]).script() for name in ("znver4", "znver5")}
    assert {name: packing_loop in text for name, text in texts.items()} == {
        "znver4": True,
        "znver5": False,
    }


def test_row_segments_cover_all_rows_once() -> None:
    for mr in (1, 4, 6, 8, 16):
        for m in range(1, 70):
            rows = [
                s.start + i * s.size + r
                for s in row_segments(m, mr)
                for i in range(s.count)
                for r in range(s.size)
            ]
            assert rows == list(range(m))
            assert all(s.size <= mr for s in row_segments(m, mr))
    assert row_segments(128, 6) == (Segment(0, 20, 6), Segment(120, 2, 4))


def test_register_tiles_fit_the_registers() -> None:
    for machine in MACHINES.values():
        kernel = choose_kernel(machine, *F32)
        for m in range(1, 40):
            tile = choose_tile(machine, kernel, m, 512)
            assert tile.mr * tile.nv + tile.nv + 1 <= machine.vector_registers


def test_rows_that_are_taken_at_once_have_as_many_vectors_as_fit() -> None:
    """Powers of two, up to four, and as many as there are columns for."""
    kernel = choose_kernel(MACHINES["znver4"], *F32)
    for m in range(1, 17):
        fitting = max(nv for nv in (1, 2, 4) if (m + 1) * nv + 1 <= 32)
        for vectors in (1, 3, 8):
            tile = choose_tile(MACHINES["znver4"], kernel, m, vectors * kernel.lanes)
            assert (tile.mr, tile.nv) == (m, min(fitting, vectors))


def test_the_fastest_exact_step_is_chosen() -> None:
    zen, old, lake = (MACHINES[n] for n in ("znver4", "haswell", "alderlake"))
    assert choose_kernel(zen, *BF16).step is MultiplyStep.DOT_BF16
    assert choose_kernel(old, *BF16).step is MultiplyStep.FMA
    assert choose_kernel(zen, *BF16, grouped=False).step is MultiplyStep.FMA
    assert choose_kernel(zen, "int8", "int8", "int32").step is MultiplyStep.DOT_INT8
    assert choose_kernel(lake, "int8", "int8", "int32").step is MultiplyStep.DOT_INT8
    assert choose_kernel(old, "int8", "uint8", "int32").step is MultiplyStep.DOT_INT16
    assert choose_kernel(zen, "int8", "int8", "int64").accumulator == "int64"


def test_copied_rows_of_bfloat16_are_held_as_bits() -> None:
    """TVM widens scratch of bfloat16 to float32, and loses track of it."""
    for dtypes, held in ((BF16, "uint16"), (F32, "float32")):
        kernel = choose_kernel(MACHINES["znver4"], *dtypes)
        spec = GemmSpec(MACHINES["znver4"], kernel, RegisterTile(4, 2))
        rows, _ = copied_a(spec, 5, 6)
        assert (rows.matrix.buffer.dtype, rows.matrix.element) == (held, dtypes[0])


def test_steps_along_k_are_even() -> None:
    spec = plan_gemm(MACHINES["znver4"], *F32, 256, 256)
    steps = {k: plan_steps(spec, k, 256) for k in (0, 131, 1024, 1000)}
    assert {k: (s.capacity, s.count) for k, s in steps.items()} == {
        0: (1, 1),
        131: (131, 1),
        1024: (176, 6),
        1000: (176, 6),
    }


def test_a_step_fills_the_ways_of_the_first_cache_that_neither_rows_nor_sums_take() -> None:
    """Of 8 ways of 4 KiB 5 hold a panel of 16 or of 32 columns; of 12, 8; of 4 of 16 KiB, one."""
    depths = {
        name: step_depth(plan_gemm(MACHINES[name], *F32, 256, 256), 256)
        for name in ("znver3", "znver4", "znver5", "skylake-avx512", "neoverse-v2")
    }
    assert depths == {
        "znver3": 320,
        "znver4": 160,
        "znver5": 256,
        "skylake-avx512": 160,
        "neoverse-v2": 340,
    }


def test_the_higher_a_block_the_shorter_its_steps_where_the_second_cache_is_small() -> None:
    """Of 8 ways of 32 KiB, 7 hold rows of A of 4 bytes, and of two panels 128."""
    spec = plan_gemm(MACHINES["haswell"], *F32, 256, 256)
    depths = {rows: step_depth(spec, rows) for rows in (64, 128, 256, 512, 100_000)}
    assert depths == {64: 320, 128: 320, 256: 192, 512: 104, 100_000: 8}


def test_narrow_elements_go_through_in_groups_of_four_bytes() -> None:
    zen = MACHINES["znver4"]
    types = (F32, BF16, ("int8", "int8", "int32"))
    depth = {t[0]: step_depth(plan_gemm(zen, *t, 256, 256), 256) for t in types}
    assert depth == {"float32": 160, "bfloat16": 320, "int8": 640}


def run_tile(
    m: int, n: int, k: int, machine: CpuMachine, *, scaled: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Multiply packed int8 or rescaled float32 tiles as attention does; return both results."""
    dtypes = F32 if scaled else ("int8", "int8", "int32")
    kernel = choose_kernel(machine, *dtypes)
    spec = GemmSpec(machine, kernel, RegisterTile(4, 2))
    a, b, c = (
        parameter(s, d, x)
        for s, d, x in (
            ([m, k], dtypes[0], "A"),
            ([k, n], dtypes[1], "B"),
            ([m, n], dtypes[2], "C"),
        )
    )
    factor = scratch([m], dtypes[2], "factor")
    panels, room = packed_b(spec, k, n)
    left, ready = OperandA(Matrix.of(a)), None
    if kernel.a_dtype != dtypes[0]:  # the step multiplies wider elements
        left, more = copied_a(spec, m, k)
        ready = emit_copy_rows(spec, Matrix.of(a), left, m, k)
        room += more
    if kernel.flip_b:
        sums, more = row_sums(spec, m)
        left, ready = emit_row_sums(spec, left, sums, m, k)
        room += more
    begin = start_from(Matrix.of(c), kernel)

    def rescaled(row, column, lanes, count):
        return begin(row, column, lanes, count) * splat(BufferLoad(factor, [as_expr(row)]), lanes)

    start = Choice(tirx.EQ(i32(1), i32(1)), rescaled if scaled else begin, None)
    body = seq(
        room,
        allocate(factor),
        loop(m, lambda i: BufferStore(factor, tirx.Cast(factor.dtype, i), [i])) if scaled else None,
        emit_pack_b(spec, Matrix.of(b), panels, k, n),
        ready,
        emit_tile_gemm(
            spec, left, panels, Extent(m, n, k), start=start, finish=StoreTo(Matrix.of(c))
        ),
    )
    rng = np.random.default_rng(0)
    x, y, z = (
        rng.integers(-100, 100, s).astype(d)
        for s, d in (((m, k), dtypes[0]), ((k, n), dtypes[1]), ((m, n), dtypes[2]))
    )
    by = np.arange(m)[:, None] if scaled else 1
    expected = z.astype(np.int64) * by + x.astype(np.int64) @ y.astype(np.int64)
    compile_module(PrimFunc([a, b, c], body), machine).entry()(x, y, z)
    return z.astype(np.int64), expected


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("scaled", [True, False], ids=["rescaled", "int8"])
@pytest.mark.parametrize("n", [64, 70, 9])
def test_tile_gemm_on_ready_operands(n: int, scaled: bool) -> None:
    np.testing.assert_array_equal(*run_tile(22, n, 36, host_machine(), scaled=scaled))


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("machine", RUNNABLE)
def test_tile_gemm_on_other_machines(machine: CpuMachine) -> None:
    with emulated_features():
        for scaled in (False, True):
            np.testing.assert_array_equal(*run_tile(22, 70, 36, machine, scaled=scaled))
