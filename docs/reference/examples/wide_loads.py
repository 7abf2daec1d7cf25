"""Loads and stores of a fixed width."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def ldg128():
    """`T.ldg32` to `T.ldg256` read global memory, `T.stg32` to `T.stg256` write it.

    So do `T.ldg64`, `T.ldg128`, `T.stg64` and `T.stg128`; the values are words of 32 bits.
    """

    @tile.jit
    def copied(A: T.Tensor((32, 16), "float32"), rows: T.int32):
        B = T.empty((32, 16), "float32")
        with T.Kernel(1, threads=32):
            row = T.get_thread_binding()
            T.stg256(B[row, 0], T.ldg256(A[row, 0]))
            T.stg128(B[row, 8], T.ldg128(A[row, 8]))
            T.stg64(B[row, 12], T.ldg64(A[row, 12]))
            T.stg32(B[row, 14], T.ldg32(A[row, 14]))
            T.stg32(B[row, 15], T.ldg32(A[row, 15], pred=row < rows))  # zero elsewhere
        return B

    a = np.arange(512, dtype="float32").reshape(32, 16)
    b = copied(a, 20)
    a[20:, 15] = 0
    assert (b == a).all()


def lds128():
    """Shared memory: `T.lds128`, `T.sts128`, `T.lds64`, `T.lds32`, `T.sts64`, `T.sts32`."""

    @tile.jit
    def neighbours(A: T.Tensor((32, 16), "float16")):
        B = T.empty((32, 16), "float16")
        with T.Kernel(1, threads=32):
            row = T.get_thread_binding()
            rows = T.alloc_shared((32, 16), "float16")
            T.sts128(rows[row, 0], T.ldg128(A[row, 0]))
            T.sts64(rows[row, 8], T.ldg64(A[row, 8]))
            T.sts32(rows[row, 12], T.ldg32(A[row, 12]))
            T.sts32(rows[row, 14], T.ldg32(A[row, 14]))
            T.sync_threads()
            other = row ^ 1
            T.stg128(B[row, 0], T.lds128(rows[other, 0]))
            T.stg64(B[row, 8], T.lds64(rows[other, 8]))
            T.stg32(B[row, 12], T.lds32(rows[other, 12]))
            T.stg32(B[row, 14], T.lds32(rows[other, 14], pred=row < 16))  # zero elsewhere
        return B

    a = np.arange(512, dtype="float16").reshape(32, 16)
    expected = a[np.arange(32) ^ 1]
    expected[16:, 14:] = 0
    assert (neighbours(a) == expected).all()


def ldg():
    """`T.__ldg` reads through the cache for data that no thread changes."""

    @tile.jit
    def looked_up(table: T.Tensor((256,), "int32"), A: T.Tensor((64,), "uint8")):
        B = T.empty((64,), "int32")
        with T.Kernel(1, threads=64):
            i = T.get_thread_binding()
            B[i] = T.__ldg(table[A[i]])
        return B

    rng = np.random.default_rng(0)
    table = rng.integers(0, 1000, 256).astype("int32")
    a = rng.integers(0, 256, 64).astype("uint8")
    assert (looked_up(table, a) == table[a]).all()
