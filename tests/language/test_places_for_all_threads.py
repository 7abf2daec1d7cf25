"""Tile operations whose places depend on the thread, and are the same for those that get there."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import drawn


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim"])
def test_threads_agree_where_they_get_there(target):
    @T.prim_func
    def main(A: T.Tensor((16, 8), "int32"), n: T.int32, B: T.Tensor((7, 8), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            half = tx // 64
            S = T.alloc_shared((7, 8), "int32")
            T.copy(A[tx // 128 + n, :], S[0, :])
            if tx == 5:
                T.copy(A[tx, :], S[1, :])
            if tx < 64:
                T.copy(A[half + 6, :], S[2, :])
            else:
                T.copy(A[half + 7, :], S[3, :])
            with T.ws(0):
                T.copy(A[tx // 128 + 9, :], S[4, :])
            for i in range(tx // 128, n):
                T.copy(A[i + 10, :], S[5, :])
            T.copy(A[T.min(tx, 0) + T.cast(tx * 256, "uint8"), :], S[6, :])
            T.copy(S, B)

    a, b = drawn(16, 8, dtype="int32"), np.zeros((7, 8), np.int32)
    tile.compile(main, target=target)(a, 3, b)
    np.testing.assert_array_equal(b, a[[3, 5, 6, 8, 9, 12, 0]])


@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim"])
def test_what_depends_on_data_is_taken_for_common(target):
    @T.prim_func
    def main(
        A: T.Tensor((16, 8), "int32"), R: T.Tensor((32,), "int32"), B: T.Tensor((16, 8), "int32")
    ):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            S = T.alloc_shared((3, 8), "int32")
            own = T.alloc_local((8,), "int32")
            row = T.shfl_sync(tx % 12 + 3, 0)
            T.copy(A[row, :], S[0, :])
            T.copy(A[R[31], :], S[1, :])
            if R[0] > 100:
                T.copy(A[tx % 16, :], S[2, :])
            T.copy(S[0:2, :], B[0:2, :])
            T.copy(A[tx % 16, :], own)
            if tx % 16 > 1 and tx < 16:
                T.copy(own, B[tx % 16, :])

    a, b = drawn(16, 8, dtype="int32"), np.zeros((16, 8), np.int32)
    tile.compile(main, target=target)(a, np.arange(32, dtype=np.int32) % 8, b)
    np.testing.assert_array_equal(b, np.concatenate((a[[3, 7]], a[2:])))
