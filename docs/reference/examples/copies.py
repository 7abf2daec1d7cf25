"""Copies of tiles, and fills."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def copy():
    """`T.copy` moves tiles, cuts off what lies outside a tensor, and converts."""

    @tile.jit
    def halves(A: T.Tensor((5, 7), "float32")):
        B = T.empty((5, 7), "float16")
        with T.Kernel(2, 2, threads=32) as (bx, by):
            a = T.alloc_shared((4, 4), "float32")
            T.copy(A[by * 4, bx * 4], a)  # a tile of 4 x 4 from there on; zeros outside of A
            T.copy(a, B[by * 4, bx * 4])
        return B

    a = np.arange(35, dtype="float32").reshape(5, 7)
    assert (halves(a) == a.astype("float16")).all()


def fill():
    """`T.fill` and `T.clear` set all elements of a tile, or of a part of one."""

    @tile.jit
    def framed():
        B = T.empty((4, 6), "int32")
        with T.Kernel(1, threads=32):
            b = T.alloc_fragment((4, 6), "int32")
            T.fill(b, 7)
            T.copy(b, B)
            T.clear(B[1:3, 1:5])
        return B

    expected = np.full((4, 6), 7, "int32")
    expected[1:3, 1:5] = 0
    assert (framed() == expected).all()


def async_copy():
    """`T.async_copy` fetches the next tile meanwhile; `T.ptx_wait_group` waits for the older.

    A group ends with `T.ptx_commit_group`.
    """

    @tile.jit
    def doubled(A: T.Tensor((4, 32), "float32")):
        B = T.empty((4, 32), "float32")
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((2, 32), "float32")
            T.async_copy(A[0, :], a[0, :])
            T.ptx_commit_group()
            for k in T.serial(4):
                if k < 3:
                    T.async_copy(A[k + 1, :], a[(k + 1) % 2, :])
                T.ptx_commit_group()
                T.ptx_wait_group(1)  # all groups but the last one are there
                T.sync_threads()
                for i in T.Parallel(32):
                    B[k, i] = a[k % 2, i] * 2
                T.sync_threads()
        return B

    a = np.arange(128, dtype="float32").reshape(4, 32)
    assert (doubled(a) == 2 * a).all()
