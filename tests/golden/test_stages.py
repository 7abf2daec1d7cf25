"""The paper's kernels as text at each stage: reviewed like code, compared in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tile_api as tile
import tile_api.language as T
from support.gpu_kernels import gemm_int4

Golden = Callable[..., None]


def matmul(m: int, n: int, k: int) -> object:
    @T.prim_func
    def gemm(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 16), threads=128) as (bx, by):
            a = T.alloc_shared((16, 8), "float16")
            b = T.alloc_shared((8, 32), "float16")
            c = T.alloc_fragment((16, 32), "float32")
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, 8), num_stages=3):
                T.copy(A[by * 16, ko * 8], a)
                T.copy(B[ko * 8, bx * 32], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(16, 32):
                c[i, j] = T.max(c[i, j], 0)
            T.copy(c, C[by * 16, bx * 32])

    return gemm


def row_softmax(rows: int, columns: int) -> object:
    @T.prim_func
    def softmax(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(rows, 4), threads=128) as bx:
            x = T.alloc_fragment((4, columns), "float32")
            highest = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_max(x, highest, dim=1)
            for i, j in T.Parallel(4, columns):
                x[i, j] = T.exp(x[i, j] - highest[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(4, columns):
                Y[bx * 4 + i, j] = x[i, j] / total[i]

    return softmax


def transpose(rows: int, columns: int) -> object:
    @T.prim_func
    def turned(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((columns, rows), "float32")):
        with T.Kernel(T.ceildiv(rows, 32), T.ceildiv(columns, 32), threads=128) as (bx, by):
            piece = T.alloc_shared((32, 32), "float32")
            T.copy(A[bx * 32, by * 32], piece)
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < columns and bx * 32 + j < rows:
                    B[by * 32 + i, bx * 32 + j] = piece[j, i]

    return turned


def scale(n: object) -> object:
    @T.prim_func
    def double(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * 2

    return double


def test_matmul(golden: Golden) -> None:
    kernel = tile.lower(matmul(40, 70, 24), "cpu:skylake-avx512")
    golden(kernel.ir("tile"), "tile")
    golden(kernel.ir("planned"), "planned")


def test_softmax(golden: Golden) -> None:
    kernel = tile.lower(row_softmax(10, 50), "cpu:skylake-avx512")
    golden(kernel.ir("tile"), "tile")


def test_scale_of_unknown_length(golden: Golden) -> None:
    kernel = tile.lower(scale(T.dynamic("n")), "cpu:haswell")
    golden(kernel.ir("tile"), "tile")
    golden(kernel.ir("lowered"), "lowered")


LOWERED: dict[str, tuple[Callable[[], object], str]] = {
    "matmul": (lambda: matmul(40, 70, 24), "cpu:skylake-avx512"),
    "softmax": (lambda: row_softmax(10, 50), "cpu:haswell"),
    "int4": (lambda: gemm_int4(64, 64, 64), "cpu:neoverse-v1"),
    "transposed": (lambda: transpose(70, 40), "cpu:skylake-avx512"),
}


@pytest.mark.parametrize("name", LOWERED)
def test_loops_of(name: str, golden: Golden) -> None:
    kernel, target = LOWERED[name]
    golden(tile.lower(kernel(), target).ir("lowered"))
