"""The model of x86 processors: what it counts, where it looks, and that it ranks."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

import tile_api as tile
import tile_api.language as T
from support.tiled_gemms import tiled_gemm
from tile_core.errors import TargetError
from tile_cpu.cost import host
from tile_cpu.cost.products import Block, product_cycles
from tile_cpu.gemm.macrokernel import plan_gemm
from tile_cpu.machine import MACHINES, host_machine, machine
from tile_cpu.speeds import SPEEDS, speeds


def matmul(block_m, block_n):
    sizes = T.dynamic("m, n, k")
    return tiled_gemm(*sizes, block=(block_m, block_n, 32), factor="float32", result="float32")


def gemm_ms(block_m: int, block_n: int, target: str = "cpu:znver4", size: int = 1024) -> float:
    found = tile.estimate(matmul(block_m, block_n), target, m=size, n=size, k=size)
    return found.milliseconds


def test_every_machine_has_speeds() -> None:
    assert set(SPEEDS) == set(MACHINES)
    with pytest.raises(TargetError, match="no speeds are known of a processor called 'pdp11'"):
        speeds("", "pdp11")


@pytest.mark.parametrize("name", ["haswell", "skylake-avx512", "znver4"])
def test_no_product_is_faster_than_the_multiply_adds_allow(name: str) -> None:
    row, cpu = SPEEDS[name], machine(name)
    spec = plan_gemm(cpu, "float32", "float32", "float32", 128, 128)
    cycles = product_cycles(row, spec, Block(128, 128, 512, packs_b=True), 4)
    least = 128 * 128 * 512 / cpu.lanes(32) / row.multiply_adds
    assert least <= cycles.multiply < 1.2 * least
    assert least < cycles.total < 1.6 * least


def test_small_blocks_pack_more_and_take_longer() -> None:
    assert gemm_ms(256, 256) < gemm_ms(64, 64) < gemm_ms(16, 32)


def test_configurations_are_ranked_as_they_were_measured() -> None:
    # Zen 4 at 3.7 GHz, one thread, 512 x 512 x 512: milliseconds by block size.
    measured = json.loads((Path(__file__).parent / "gemm_times.json").read_text())
    told = {key: gemm_ms(*map(int, key.split("x")), size=512) for key in measured}
    order = sorted(measured, key=measured.__getitem__)
    pick = min(told, key=told.__getitem__)
    assert measured[order[0]] / measured[pick] >= 0.85
    pairs = [(a, b) for a, b in product(order, order) if measured[a] < 0.95 * measured[b]]
    right = sum(told[a] <= told[b] for a, b in pairs)
    assert right / len(pairs) > 0.85


def parts_of(kernel, **sizes) -> dict[str, float]:
    found = tile.estimate(kernel, "cpu:znver4", **sizes)
    return {part.name: part.milliseconds for part in found.parts}


def test_few_rows_wait_for_the_second_factor() -> None:
    few, many = (parts_of(matmul(64, 64), m=m, n=8192, k=8192) for m in (16, 2048))
    ratios = [found["waiting for caches"] / found["matrix products"] for found in (few, many)]
    assert ratios[0] > 0.5 > ratios[1]


def product_in_scratch(dtype: str, transposed: bool):
    shape = (64, 16) if transposed else (16, 64)

    @T.prim_func
    def main(
        A: T.Tensor(shape, dtype), B: T.Tensor((64, 64), dtype), C: T.Tensor((16, 64), "float32")
    ):
        with T.Kernel(1, threads=32):
            a, b = T.alloc_shared(shape, dtype), T.alloc_shared((64, 64), dtype)
            c = T.alloc_fragment((16, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(64, 64):
                b[i, j] = b[i, j] * 2
            T.clear(c)
            T.gemm(a, b, c, transpose_A=transposed)
            T.copy(c, C)

    return main


def test_factors_that_lie_as_they_are_read_are_not_packed() -> None:
    for dtype, transposed in product(("float32", "float16"), (False, True)):
        parts = parts_of(product_in_scratch(dtype, transposed))
        assert ("packing operands" in parts) == transposed


def sums_of_rows(rows: int, scans: bool):
    @T.prim_func
    def main(A: T.Tensor((rows, 256), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((rows, 256), "float32")
            totals = T.alloc_fragment((rows,), "float32")
            T.copy(A, a)
            if scans:
                T.cumsum(a, dim=1)
            T.reduce_sum(a, totals, dim=1)
            T.copy(totals, B)

    return main


def rows_of(width: int, between: int):
    @T.prim_func
    def main(A: T.Tensor((64, width + between), "float32"), B: T.Tensor((64 * width,), "float32")):
        with T.Kernel(1, threads=32):
            for j in T.Parallel(64 * width):
                B[j] = A[j // width, j % width]

    return main


def test_rows_without_gaps_are_as_good_as_one() -> None:
    dense, gaps = (parts_of(rows_of(28, between))["arithmetic"] for between in (0, 4))
    assert 4 * dense < gaps


def test_operators_take_longer_for_more_rows_and_more_steps() -> None:
    few, many, scanned = (
        parts_of(sums_of_rows(*how)) for how in ((16, False), (32, False), (16, True))
    )
    for part in ("reductions", "copies"):
        assert many[part] == pytest.approx(2 * few[part], rel=0.1)
    assert scanned["reductions"] > 2 * few["reductions"] > 0


def summed(along_rows: bool):
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=32):
            totals = T.alloc_fragment((256,), "float32")
            T.fill(totals, 0.0)
            for i in T.Parallel(256):
                for j in T.serial(256):
                    totals[i] += A[i, j] if along_rows else A[j, i]
            T.copy(totals, B)

    return main


def test_a_round_of_a_loop_over_rows_is_one_for_a_vector_of_columns() -> None:
    rows, columns = (parts_of(summed(along_rows))["loops"] for along_rows in (True, False))
    assert rows == pytest.approx(machine("znver4").lanes(32) * columns, rel=0.01)


def test_short_launches_stay_on_one_thread() -> None:
    found = tile.estimate(matmul(64, 64), "cpu:znver4", m=16, n=16, k=16)
    assert found.occupancy_why == "1 blocks on 1 threads"


def test_tensors_that_fit_into_a_cache_do_not_come_from_memory() -> None:
    def memory(size: int) -> float:
        found = tile.estimate(matmul(128, 128), "cpu:znver4", m=size, n=size, k=size)
        return found.nbytes["memory"]

    assert memory(1024) == 0
    assert memory(4096) == 3 * 4096**2 * 4


def test_the_clock_is_measured_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(host, "_measured_ghz", lambda cpu, row: 3.25)
    host.host_speeds.cache_clear()
    try:
        assert host.speeds_of("").clock_ghz == 3.25
        (file,) = tmp_path.iterdir()
        assert json.loads(file.read_text()) == {"clock_ghz": 3.25}
        monkeypatch.setattr(host, "_measured_ghz", lambda cpu, row: 1 / 0)
        host.host_speeds.cache_clear()
        assert host.speeds_of("native").name == f"{host_machine().name} at 3.25 GHz"
        file.write_text("{")
        monkeypatch.setattr(host, "_measured_ghz", lambda cpu, row: 2.0)
        host.host_speeds.cache_clear()
        assert host.speeds_of("").clock_ghz == 2.0
    finally:
        host.host_speeds.cache_clear()
    assert host.speeds_of("haswell") == SPEEDS["haswell"]
    assert host.speeds_of("", "znver2") == SPEEDS["znver2"]
