"""Loops whose extents are known at run time only: each index runs over its own."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import poisoned


@pytest.mark.parametrize("extents", [(3, 5, 7), (1, 9, 2), (4, 1, 33)])
def test_three_extents(run, extents):
    a, b, c = T.dynamic("a, b, c")

    @T.prim_func
    def main(A: T.Tensor((a, b, c), "int32"), B: T.Tensor((a, b, c), "int32")):
        with T.Kernel(1, threads=32):
            for i, j, k in T.Parallel(a, b, c):
                B[i, j, k] = A[i, j, k] + 10000 * i + 100 * j + k

    given = np.arange(np.prod(extents), dtype=np.int32).reshape(extents) * 1000000
    got = poisoned(*extents, dtype="int32")
    run(main, given, got)
    i, j, k = np.indices(extents)
    np.testing.assert_array_equal(got, (given + 10000 * i + 100 * j + k).astype(np.int32))


def test_a_triangle_of_a_block_known_at_run_time(run):
    """Which index is which shows in what is left out."""
    a, b, c = T.dynamic("a, b, c")

    @T.prim_func
    def main(A: T.Tensor((a, b, c), "int32")):
        with T.Kernel(1, threads=64):
            for i, j, k in T.Parallel(a, b, c):
                if i < j and j <= k:
                    A[i, j, k] = i * 100 + j * 10 + k

    got = np.full((6, 5, 9), -1, np.int32)
    run(main, got)
    i, j, k = np.indices(got.shape)
    expected = np.where((i < j) & (j <= k), i * 100 + j * 10 + k, -1)
    np.testing.assert_array_equal(got, expected)
