"""Products whose operands and results end at different symbols: each at its own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

rows_a, rows_b, rows, columns = (T.dynamic(name) for name in ("ra", "rb", "r", "c"))


@T.prim_func
def product(
    A: T.Tensor((rows_a, 12), "int8"),
    B: T.Tensor((rows_b, 12), "int8"),
    C: T.Tensor((rows, columns), "int32"),
):
    with T.Kernel(1, 1, threads=32) as (bx, by):
        a = T.alloc_shared((13, 4), "int8")
        b = T.alloc_shared((8, 4), "int8")
        c = T.alloc_fragment((13, 8), "int32")
        T.clear(c)
        for k in T.Pipelined(3):
            T.copy(A[by * 13, k * 4], a)
            T.copy(B[bx * 8, k * 4], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * 13, bx * 8])


@pytest.mark.parametrize("target", ["interpret", "cpu", "cpu:haswell"])
def test_zeros_where_an_operand_ends_and_nothing_beside_the_result(target: str) -> None:
    kernel = tile.compile(product, target=target)
    rng = np.random.default_rng(3)
    for ra, rb, r, c in itertools.product((2, 13), (2, 8), (2, 13), (3, 8)):
        a, b = (rng.integers(-4, 5, (n, 12)).astype(np.int8) for n in (ra, rb))
        around = np.full((r * c + 256,), 99, np.int32)
        kernel(a, b, around[: r * c].reshape(r, c))
        wanted = np.zeros((13, 8), np.int32)
        wanted[:ra, :rb] = a.astype(np.int32) @ b.T.astype(np.int32)
        np.testing.assert_array_equal(around[: r * c].reshape(r, c), wanted[:r, :c])
        assert (around[r * c :] == 99).all()
