"""Launches are spread over threads where that is worth waking them, and only there."""

import math
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.node import walk
from tile_core.ir.stmt import Launch
from tile_cpu.lowering.parallel_threshold import PER_BYTE, PER_PRODUCT, UNKNOWN, block_nanoseconds
from tile_cpu.openmp_threads import INLINE_BELOW_NS


def add(n: object, function: bool = False, block: int = 64) -> Any:
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = T.exp(A[bx * block + i]) if function else A[bx * block + i] + 1

    return tile.compile(main, target="cpu")


def product(m: int, rounds: int) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((m, 64 * rounds), "float32"),
        B: T.Tensor((64 * rounds, m), "float32"),
        C: T.Tensor((m, m), "float32"),
    ):
        with T.Kernel(m // 16, m // 16, threads=64) as (bx, by):
            a = T.alloc_shared((16, 64), "float32")
            b = T.alloc_shared((64, 16), "float32")
            c = T.alloc_fragment((16, 16), "float32")
            T.clear(c)
            for k in T.Pipelined(rounds, num_stages=2):
                T.copy(A[by * 16, k * 64], a)
                T.copy(B[k * 64, bx * 16], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 16, bx * 16])

    return tile.compile(main, target="cpu")


def is_parallel(kernel: Any) -> bool:
    return "T.parallel(" in kernel.ir("lowered")


def test_short_launches_are_loops() -> None:
    assert not is_parallel(add(1024))
    assert is_parallel(add(1 << 20))


def test_functions_and_products_count_more() -> None:
    assert not is_parallel(add(4096))
    assert is_parallel(add(4096, function=True))
    assert not is_parallel(product(32, 1))
    assert is_parallel(product(32, 16))


@pytest.mark.parametrize("n", [1, 63, 64, 1000, 100_000])
def test_launches_of_unknown_length_are_told_apart_when_they_run(n: int) -> None:
    kernel = add(T.dynamic("n"))
    assert "tile_work_hint" in kernel.ir("lowered")
    x = np.arange(n, dtype=np.float32)
    y = np.full(n, np.nan, np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_what_cannot_be_told_is_long() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(64, threads=1) as bx:
            for k in T.serial(n):
                A[bx] = A[bx] + k

    kernel = tile.compile(main, target="cpu")
    assert is_parallel(kernel)
    assert "tile_work_hint" not in kernel.ir("lowered")


def cost_of(program: Any) -> float:
    launch = next(n for n in walk(program.kernel) if isinstance(n, Launch))
    return block_nanoseconds(launch.body)


def copied(*shape: int, dtype: str = "float32", times: int = 1) -> float:
    """Return the time for copies of a tile into another."""

    @T.prim_func
    def main(A: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=1) as _:
            tile = T.alloc_shared(shape, dtype)
            for _ in T.unroll(times):
                T.copy(A, tile)

    return cost_of(main)


def multiplied(m: int, n: int, k: int, turned: bool = False) -> float:
    """Return the time for a product, its first factor turned or not."""
    left, right = ((k, m) if turned else (m, k)), (k, n)

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=1) as _:
            a = T.alloc_shared(left, "float32")
            b = T.alloc_shared(right, "float32")
            c = T.alloc_fragment((m, n), "float32")
            T.gemm(a, b, c, transpose_A=turned)

    return cost_of(main)


def test_copies_count_bytes_and_products_count_products() -> None:
    assert copied(8, 16) == pytest.approx(2 * 8 * 16 * 4 * PER_BYTE)
    assert copied(8, 16, dtype="float16") == pytest.approx(2 * 8 * 16 * 2 * PER_BYTE)
    assert copied(8, 16, times=3) == pytest.approx(3 * copied(8, 16))
    for turned in (False, True):
        assert multiplied(16, 32, 64, turned) == pytest.approx(16 * 32 * 64 * PER_PRODUCT)


def test_nested_loops_multiply() -> None:
    def cost(outer: int, inner: int) -> float:
        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(64, threads=1) as bx:
                for _ in T.serial(outer):
                    for _ in T.serial(0, 2 * inner, 2):
                        A[bx] = 1

        return cost_of(main)

    assert cost(3, 5) == 15 * cost(1, 1)
    assert cost(0, 5) == 0
    assert 0 < cost(1, 1) < INLINE_BELOW_NS
    assert math.isinf(UNKNOWN)
