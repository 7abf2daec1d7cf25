"""The model of GPUs counts what lowering made: instructions, banks, sectors, waves."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.gpu_kernels import gemm
from tile_core.cost.gpu import overlapped, registers_wanted
from tile_core.cost.gpu_calls import sectors, shared_cycles
from tile_core.cost.gpu_issue import Issue, Issued
from tile_core.cost.gpu_memory import bytes_from_memory
from tile_core.cost.gpu_speeds import speeds_of
from tile_core.cost.iteration_spaces import Space
from tile_core.cost.statement_walk import visit
from tile_core.errors import TargetError
from tile_core.simt.program import DeviceFunction
from tile_core.simt.resources import Resources
from tile_cuda.machine import machine
from tile_cuda.speeds import PRODUCTS
from tile_hip.speeds import PRODUCTS as AMD

LANES = np.arange(32)


def lowered(func, target: str) -> DeviceFunction:
    (function,) = tile.lower(func, target).device_mod.functions
    return function


def issued(func, target: str) -> Issued:
    program = tile.lower(func, target).device_mod
    (function,) = program.functions
    counting = Issue(function, program.machine)
    visit(function.launch, Space({}), counting, with_threads=True)
    return counting.found


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ["cuda:sm_70", "cuda:sm_75", "cuda:sm_80", "cuda:sm_90a",
                                    "hip:gfx90a", "hip:gfx942", "hip:gfx950"])  # fmt: skip
def test_matrix_instructions_multiply_what_the_kernel_asks_for(target: str) -> None:
    found = issued(gemm(256, 384, 128), target)
    ((dtype, joint),) = found.flops
    assert dtype == "float16"
    assert joint is (target == "cuda:sm_90a")
    assert found.flops[dtype, joint] == 2 * 256 * 384 * 128


def test_every_way_of_copying_reads_the_factors_once_per_block() -> None:
    reads = 256 * 128 * 2 * 3 + 128 * 384 * 2 * 2
    for target in ("cuda:sm_70", "cuda:sm_80", "cuda:sm_90a", "hip:gfx942"):
        found = issued(gemm(256, 384, 128), target)
        asked = sum(a.nbytes for a in found.accesses if not a.is_write)
        assert asked == reads, target
        assert sum(a.nbytes for a in found.accesses if a.is_write) == 256 * 384 * 2, target


def test_swizzled_tiles_have_no_conflicts_and_row_major_ones_do() -> None:
    swizzled = issued(gemm(128, 128, 64), "cuda:sm_80")
    assert swizzled.shared_cycles == swizzled.shared_ideal
    from tile_core.layout import row_major

    def rows(a, b):
        return {a: row_major((128, 32)), b: row_major((32, 128))}

    plain = issued(gemm(128, 128, 64, layouts=rows), "cuda:sm_80")
    assert plain.shared_cycles > 2 * plain.shared_ideal


def strided(step: int):
    @T.prim_func
    def main(A: T.Tensor((1 << 16,), "float32"), C: T.Tensor((1 << 16,), "float32")):
        with T.Kernel(8, threads=128) as bx:
            for i in T.Parallel(128):
                C[bx * 128 + i] = A[(bx * 128 + i) * step]

    return main


def test_strided_reads_fetch_whole_sectors() -> None:
    for step, share in ((1, 1), (2, 2), (8, 8), (32, 8)):
        found = issued(strided(step), "cuda:sm_80")
        (read,) = (a for a in found.accesses if not a.is_write)
        assert read.fetched == share * read.nbytes == share * 8 * 128 * 4


def test_what_a_condition_reads_comes_from_memory_once() -> None:
    @T.prim_func
    def chosen(A: T.Tensor((4096,), "int32"), C: T.Tensor((4096,), "int32")):
        with T.Kernel(8, threads=128) as bx:
            for i in T.Parallel(512):
                if A[bx * 512 + i] > 0 and A[bx * 512 + i] < 7:
                    C[bx * 512 + i] = 1

    found = issued(chosen, "cuda:sm_80")
    assert [a.nbytes for a in found.accesses if not a.is_write] == [4096 * 4]


@pytest.mark.parametrize(
    ("step", "nbytes", "cycles"),
    [(4, 4, 1), (8, 4, 2), (128, 4, 32), (132, 4, 1), (0, 4, 1), (8, 8, 2), (16, 16, 4),
     (32, 16, 8), (144, 16, 4), (2, 2, 1)],
)  # fmt: skip
def test_banks(step: int, nbytes: int, cycles: int) -> None:
    assert shared_cycles(LANES * step, nbytes) == cycles


def test_sectors() -> None:
    assert sectors(LANES * 16, 16) == 16
    assert sectors(LANES * 0, 4) == 1
    assert sectors(LANES * 4 + 16, 4) == 5


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "arch", "blocks"),
    [
        # CUDA Occupancy Calculator.
        (32, 256, 0, "sm_80", 8),
        (64, 256, 0, "sm_80", 4),
        (128, 128, 48 * 1024, "sm_80", 3),
        (255, 256, 0, "sm_90a", 1),
        (32, 1024, 0, "sm_75", 1),
    ],
)
def test_occupancy(registers: int, threads: int, shared: int, arch: str, blocks: int) -> None:
    needs = Resources(name="k", registers=registers)
    assert needs.occupancy(machine(arch), threads, shared).blocks == blocks


def test_the_estimate_tells_the_occupancy_of_its_launch() -> None:
    found = tile.estimate(gemm(4096, 4096, 4096), "cuda:sm_80")
    assert found.occupancy == 8 / 64
    assert found.occupancy_why.startswith("2 blocks of 49152 bytes of shared memory and about 20")


def test_registers_follow_from_the_tiles_in_them() -> None:
    wanted = registers_wanted(lowered(gemm(128, 128, 64), "cuda:sm_80"))
    assert 128 + 32 <= wanted <= 255  # the sums, the fragments of factors, and what else


def test_blocks_that_run_together_share_what_they_read() -> None:
    found = issued(gemm(4096, 4096, 256), "cuda:sm_80")
    tensors = {a.tensor for a in found.accesses}
    sizes = dict.fromkeys(tensors, float(4096 * 256 * 2))
    touched = sum(a.fetched for a in found.accesses)
    once = bytes_from_memory(found.accesses, sizes, 1 << 30, 216)
    alone = bytes_from_memory(found.accesses, sizes, 0, 1)
    together = bytes_from_memory(found.accesses, sizes, 0, 216)
    assert once < together < alone / 3
    assert alone == touched


def test_more_work_in_fewer_waves_is_told_apart() -> None:
    # 108 multiprocessors hold two blocks each: one more block begins another wave.
    full = tile.estimate(gemm(128 * 216, 128, 4096), "cuda:sm_80").milliseconds
    more = tile.estimate(gemm(128 * 217, 128, 4096), "cuda:sm_80").milliseconds
    assert more > 1.2 * full


def test_products_of_an_architecture_are_chosen_by_name() -> None:
    assert speeds_of(PRODUCTS, "sm_90a").name == "h100"
    assert speeds_of(PRODUCTS, "sm_90a", "H200").memory_gbps == 4800
    assert speeds_of(AMD, "gfx942", "MI-300X").multiprocessors == 304
    with pytest.raises(TargetError, match="no machine of architecture sm_80 is called 'h200'"):
        speeds_of(PRODUCTS, "sm_80", "h200")


def test_every_architecture_has_speeds() -> None:
    from tile_cuda.machine import ARCHITECTURES
    from tile_hip.machine import ARCHITECTURES as AMDS

    assert {p.arch for p in PRODUCTS} == set(ARCHITECTURES)
    assert {p.arch for p in AMD} == set(AMDS)


HALVES = ("float16", "bfloat16")
STATED = {  # TFLOP/s of dense products, float32 sums: data sheets and white papers of the makers
    "v100": {125: ("float16",)},
    "t4": {65: ("float16",), 130: ("int8",), 260: ("int4",)},
    "a100": {312: HALVES, 156: ("tfloat32", "float32"), 624: ("int8",), 1248: ("int4",),
             19.5: ("float64",)},
    "rtx3090": {71: HALVES, 35.6: ("tfloat32", "float32"), 284: ("int8",), 568: ("int4",)},
    "rtx4090": {165.2: HALVES, 82.6: ("tfloat32", "float32"), 660.6: ("int8",),
                1321.2: ("int4",), 330.3: ("float8",)},
    "h100": {989.4: HALVES, 494.7: ("tfloat32", "float32"), 1978.9: ("int8", "float8")},
    "b200": {2250: HALVES, 1125: ("tfloat32", "float32"), 9000: ("scaled float4",),
             4500: ("int8", "float8", "scaled float8")},
    "thor": {258.75: HALVES, 1035 / 2: ("float8", "scaled float8"), 1035: ("scaled float4",)},
    "rtx5090": {209.5: HALVES, 104.8: ("tfloat32", "float32"), 419: ("float8",),
                838: ("int8", "scaled float8"), 1676: ("scaled float4",)},
    "mi210": {181.0: (*HALVES, "int8"), 45.3: ("float32", "float64")},
    "mi300x": {1307.4: HALVES, 653.7: ("tfloat32",), 2614.9: ("int8", "float8"),
               163.4: ("float32", "float64")},
    "mi355x": {2516.6: HALVES, 5033: ("int8", "float8"), 157.3: ("float32",), 78.6: ("float64",)},
}  # fmt: skip
STATED |= {  # of an L40S: half of what is stated with two zeros in four
    "l40s": {366.5: HALVES, 183: ("tfloat32", "float32"), 733: ("int8", "float8")},
    "h200": STATED["h100"],
    "mi250": STATED["mi210"],  # one of its two devices
}
ARITHMETIC = {  # TFLOP/s of float32; an H100's and a B200's clock is higher there than in products
    "v100": 15.7, "t4": 8.1, "a100": 19.5, "rtx3090": 35.6, "orin": 5.3, "rtx4090": 82.6,
    "l40s": 91.6, "h100": 66.9 * 1.83 / 1.98, "h200": 66.9 * 1.83 / 1.98,
    "b200": 75 * 1.85 / 1.98, "b300": 75 * 1.85 / 1.98, "thor": 8.064, "rtx5090": 104.8,
    "gb10": 31.0,
    "mi210": 22.6, "mi250": 22.6, "mi300x": 81.7, "mi355x": 78.6,
}  # fmt: skip
ROWS = pytest.mark.parametrize("row", [*PRODUCTS, *AMD], ids=lambda r: f"{r.name}-{r.arch}")


def tera(row, per_cycle: float) -> float:
    return per_cycle * row.multiprocessors * row.clock_ghz / 1e3


@ROWS
def test_tables_give_the_stated_peaks(row) -> None:
    assert tera(row, 2 * row.lanes) == pytest.approx(ARITHMETIC[row.name], abs=0.07)
    for peak, dtypes in STATED.get(row.name, {}).items():
        for dtype in dtypes:
            assert tera(row, row.products[dtype]) == pytest.approx(peak, rel=0.005), dtype


RATES = {"bfloat16": 1, "tfloat32": 1 / 2, "int8": 2, "int4": 4, "float8": 2}


@pytest.mark.parametrize("row", [r for r in (*PRODUCTS, *AMD) if r.name in STATED],
                         ids=lambda r: f"{r.name}-{r.arch}")  # fmt: skip
def test_half_the_bits_are_multiplied_at_twice_the_rate(row) -> None:
    """Consumer cards halve the rate of what is summed up in float32, not that of integers.

    CDNA 2 multiplies bytes as fast as halves.
    """
    own = {**RATES, "int8": 1} if row.arch == "gfx90a" else RATES
    is_halved = row.name.startswith("rtx")
    for dtype in row.products.keys() & own.keys():
        rate = own[dtype] * (2 if is_halved and dtype.startswith("int") else 1)
        assert row.products[dtype] == rate * row.products["float16"], dtype


@ROWS
def test_products_of_doubles_are_twice_as_fast_as_arithmetic_but_on_cdna_4(row) -> None:
    if "float64" in row.products:
        ratio = row.products["float64"] / (2 * row.double_lanes)
        assert ratio == (1 if row.arch == "gfx950" else 2)


def test_what_runs_side_by_side_takes_a_little_longer_than_the_longest() -> None:
    assert overlapped(2.0, 0.0) == 2.0
    assert 2.0 < overlapped(2.0, 1.0) < 2.1
    assert overlapped(2.0, 2.0) == pytest.approx(2.0 * 2**0.25)
    assert overlapped() == 0.0


def test_a_mask_is_a_comparison_and_a_choice_per_element() -> None:
    def halves(is_masked: bool):
        @T.prim_func
        def kernel(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, 1, threads=128) as (bx, by):
                x = T.alloc_fragment((64, 64), "float32")
                T.copy(X, x)
                for i, j in T.Parallel(64, 64):
                    if is_masked:
                        x[i, j] = T.if_then_else(by * 64 + i >= bx * 64 + j, x[i, j] * 2.0, 0)
                    else:
                        x[i, j] = x[i, j] * 2.0
                T.copy(x, Y)

        return kernel

    plain, masked = (issued(halves(m), "cuda:sm_90a").instructions for m in (False, True))
    per_warp = 64 * 64 / 32
    assert plain["float32"] == per_warp
    assert masked["float32"] == 3 * per_warp
    assert masked["integer"] == plain["integer"]


def test_what_a_mask_loads_is_computed_for_each_element() -> None:
    def chosen(shift: int):
        @T.prim_func
        def kernel(X: T.Tensor((64, 64), "int32"), Y: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128) as _:
                y = T.alloc_fragment((64, 64), "float32")
                for i, j in T.Parallel(64, 64):
                    code = X[i, j] * 3 + 1 if shift else X[i, j]
                    y[i, j] = T.if_then_else(code > 5, 1.0, 0.0)
                T.copy(y, Y)

        return kernel

    plain, more = (issued(chosen(shift), "cuda:sm_90a").instructions for shift in (0, 1))
    assert sum(more.values()) - sum(plain.values()) >= 64 * 64 / 32
