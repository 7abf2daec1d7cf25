"""Loops over sizes that tiles do not divide: no guard in the main loop, and exact results."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

TARGET = "cuda:sm_80@sim"
ROWS, COLUMNS, BLOCK = 8, 1000, 128
FOR = re.compile(r"for \(int ko?(?:_\d+)? = (\S+); \w+ < (.*); ")


def loops_over_k(kernel: Any) -> list[tuple[str, str, str]]:
    """Return first round, end and text of the body of each loop over k."""
    lines = kernel.get_kernel_source().splitlines()
    found = []
    for at, line in enumerate(lines):
        head = FOR.search(line)
        if head is None:
            continue
        depth = len(line) - len(line.lstrip())
        end = next(n for n in range(at + 1, len(lines)) if lines[n] == " " * depth + "}")
        body = "\n".join(b for b in lines[at + 1 : end] if not b.lstrip().startswith("for ("))
        found.append((head[1], head[2], body))
    return found


def softmax() -> Any:
    @T.prim_func
    def softmax(A: T.Tensor((ROWS, COLUMNS), "float32"), B: T.Tensor((ROWS, COLUMNS), "float32")):
        with T.Kernel(T.ceildiv(ROWS, 4), threads=128) as by:
            x = T.alloc_fragment((4, BLOCK), "float32")
            largest = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            part = T.alloc_fragment((4,), "float32")
            T.fill(largest, -1e30)
            T.clear(total)
            for k in T.serial(T.ceildiv(COLUMNS, BLOCK)):
                for i, j in T.Parallel(4, BLOCK):
                    inside = k * BLOCK + j < COLUMNS
                    x[i, j] = T.if_then_else(inside, A[by * 4 + i, k * BLOCK + j], -1e30)
                T.reduce_max(x, largest, dim=1, clear=False)
            for k in T.serial(T.ceildiv(COLUMNS, BLOCK)):
                for i, j in T.Parallel(4, BLOCK):
                    inside = k * BLOCK + j < COLUMNS
                    power = T.exp2(A[by * 4 + i, k * BLOCK + j] - largest[i])
                    x[i, j] = T.if_then_else(inside, power, 0.0)
                T.reduce_sum(x, part, dim=1)
                for i in T.Parallel(4):
                    total[i] = total[i] + part[i]
            for k in T.serial(T.ceildiv(COLUMNS, BLOCK)):
                for i, j in T.Parallel(4, BLOCK):
                    power = T.exp2(A[by * 4 + i, k * BLOCK + j] - largest[i])
                    B[by * 4 + i, k * BLOCK + j] = power / total[i]

    return softmax


def test_softmax_of_rows_that_blocks_do_not_divide() -> None:
    kernel = tile.compile(softmax(), target=TARGET)
    loops = loops_over_k(kernel)
    assert [(first, end) for first, end, _ in loops] == [("0", "7")] * 3
    for _, _, body in loops:
        assert not re.search(r" \? |< 1000", body)
    a = np.random.default_rng(0).integers(-3, 4, (ROWS, COLUMNS)).astype(np.float32)
    b = np.full_like(a, np.nan)
    kernel(a, b)
    powers = np.exp2(a - a.max(1, keepdims=True))
    np.testing.assert_array_equal(b, powers / powers.sum(1, keepdims=True))


def doubled() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def doubled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            for k in T.serial(T.ceildiv(n, 4 * 256)):
                for i in T.Parallel(256):
                    B[(k * 4 + bx) * 256 + i] = A[(k * 4 + bx) * 256 + i] * 2.0

    return doubled


def test_blocks_that_stride_over_a_length_known_late() -> None:
    kernel = tile.compile(doubled(), target=TARGET)
    (_, whole, steady), (first, _, tail) = loops_over_k(kernel)
    assert first == whole
    assert not re.search(r"if \(|< n", steady)
    assert "if (at < n)" in tail
    for n in (1, 255, 256, 257, 768, 1023, 1024, 1025, 1792, 2047, 2048, 3000):
        a = np.random.default_rng(n).integers(-9, 10, n).astype(np.float32)
        b = np.full_like(a, np.nan)
        kernel(a, b)
        np.testing.assert_array_equal(b, a * 2)


def product(k: Any, stages: int) -> Any:
    @T.prim_func
    def product(
        A: T.Tensor((64, k), "float16"),
        B: T.Tensor((k, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=64):
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=stages):
                T.copy(A[0, ko * 32], A_shared)
                T.copy(B[ko * 32, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C)

    return product


def multiply(kernel: Any, k: int) -> None:
    """Compare a product with the exact one."""
    random = np.random.default_rng(k)
    a = random.integers(-2, 3, (64, k)).astype(np.float16)
    b = random.integers(-2, 3, (k, 64)).astype(np.float16)
    c = np.full((64, 64), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(("stages", "rounds"), [(1, "8"), (2, "7")])
def test_products_over_an_odd_length(stages: int, rounds: str) -> None:
    kernel = tile.compile(product(261, stages), target=TARGET)
    first, end, steady = next(loop for loop in loops_over_k(kernel) if "mma" in loop[2])
    assert (first, end) == ("0", rounds)
    assert not re.search(r"if \(| \? |< 261", steady)
    multiply(kernel, 261)


@pytest.mark.parametrize("stages", [1, 2])
def test_products_over_a_length_known_late(stages: int) -> None:
    kernel = tile.compile(product(T.dynamic("n"), stages), target=TARGET)
    steady, tail = (body for _, _, body in loops_over_k(kernel) if "mma" in body)
    assert not re.search(r"if \(| \? |< n", steady)
    assert "< n" in tail
    for k in (1, 31, 32, 33, 63, 64, 65, 100, 128, 129):
        multiply(kernel, k)


def test_predicates_do_not_double_products() -> None:
    kernel = tile.compile(product(260, 2), target=TARGET)
    text = kernel.get_kernel_source()
    assert "cp_async<8>" in text
    assert len([body for _, _, body in loops_over_k(kernel) if "mma" in body]) == 1
    multiply(kernel, 260)


def ragged_product() -> Any:
    """Return a product whose extents are all known late, in whole vectors of eight."""
    m, n, k = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")

    @T.prim_func
    def product(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n))
    ):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=64) as (bx, by):
            T.assume(n % 8 == 0)
            T.assume(k % 8 == 0)
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
                T.copy(A[by * 64, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 64, bx * 64])

    return product


def test_what_every_round_checks_of_its_rows_goes_though_columns_stay_in_doubt() -> None:
    """Loads of B ask for row and column: whether the column is inside no round decides."""
    kernel = tile.compile(ragged_product(), target="cuda:sm_75@sim")
    steady, tail = (body for _, _, body in loops_over_k(kernel) if "mma" in body)
    assert "< n" in steady
    assert "< m" in steady
    assert "< k" not in steady
    assert "< k" in tail
    random = np.random.default_rng(5)
    for m, n, k in ((64, 64, 32), (65, 72, 40), (1, 8, 8), (70, 128, 200), (3, 136, 256)):
        a = random.integers(-2, 3, (m, k)).astype(np.float16)
        b = random.integers(-2, 3, (k, n)).astype(np.float16)
        c = np.full((m, n), np.nan, np.float32)
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
