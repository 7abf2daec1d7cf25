"""C's integer promotions: what is wider than a short integer sees what int32 would hold."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import poisoned

SHORT = ["int8", "uint8", "int16", "uint16"]
ROWS = 16


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", SHORT)
def test_short_integers_are_computed_as_int32(run, dtype):
    limits = np.iinfo(dtype)
    near = np.array([limits.min, limits.min + 1, 0, 1, 3, limits.max - 1, limits.max], dtype)
    a, b = (x.ravel() for x in np.meshgrid(near, near))
    n = len(a)

    @T.prim_func
    def main(
        A: T.Tensor((n,), dtype),
        B: T.Tensor((n,), dtype),
        C: T.Tensor((ROWS, n), "int32"),
        D: T.Tensor((ROWS, n), dtype),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                C[0, i] = A[i] + B[i]
                C[1, i] = A[i] - B[i]
                C[2, i] = A[i] * B[i]
                C[3, i] = A[i] << 14
                C[4, i] = ~A[i]
                C[5, i] = -A[i]
                C[6, i] = (A[i] + B[i]) >> 1
                C[7, i] = T.if_then_else(A[i] - B[i] < 0, 1, 0)
                C[8, i] = T.max(A[i] + B[i], 0)
                C[9, i] = T.cast(A[i] + B[i], dtype)
                C[10, i] = (A[i] + B[i] | 1) ^ B[i]
                C[11, i] = (A[i] + B[i]) & 15
                C[12, i] = T.abs(A[i] - B[i])
                C[13, i] = T.if_then_else(i > 3, A[i] + B[i], B[i])
                C[14, i] = (A[i] - B[i]) // 3
                C[15, i] = T.cast(T.cast(A[i] - B[i], "float32"), "int32")
                D[0, i] = A[i] + B[i]
                D[1, i] = (A[i] + B[i]) >> 1
                D[2, i] = (A[i] + B[i]) // 2
                D[3, i] = T.abs(A[i] - B[i])
                D[4, i] = T.min(A[i] + B[i], 7)
                D[5, i] = (A[i] * 3 + B[i]) % 5

    c, d = poisoned(ROWS, n, dtype="int32"), poisoned(ROWS, n, dtype=dtype)
    run(main, a, b, c, d)
    x, y = a.astype(np.int64), b.astype(np.int64)
    held = (x + y).astype(dtype)
    wide = [
        x + y, x - y, x * y, x << 14, ~x, -x, (x + y) >> 1, x - y < 0, np.maximum(x + y, 0), held,
        (x + y | 1) ^ y, (x + y) & 15, abs(x - y), np.where(np.arange(n) > 3, x + y, y),
        (x - y) // 3, x - y,
    ]  # fmt: skip
    for row, wanted in enumerate(wide):
        np.testing.assert_array_equal(c[row], wanted.astype(np.int32), err_msg=f"C[{row}]")
    short = [x + y, (x + y) >> 1, (x + y) // 2, abs(x - y), np.minimum(x + y, 7), (x * 3 + y) % 5]
    for row, wanted in enumerate(short):
        np.testing.assert_array_equal(d[row], wanted.astype(dtype), err_msg=f"D[{row}]")


def test_sums_of_elements_reach_indices(run):
    @T.prim_func
    def main(I: T.Tensor((8,), "uint8"), A: T.Tensor((512,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[I[i] + I[7 - i]]

    at, values = np.array([250, 255, 0, 1, 2, 5, 6, 200], np.uint8), np.arange(512, dtype=np.int32)
    found = poisoned(8, dtype="int32")
    run(main, at, values, found)
    assert found.tolist() == (at.astype(int) + at[::-1]).tolist()


def test_values_with_names_have_their_type(run):
    """A variable holds no more than its type, as in C."""

    @T.prim_func
    def main(A: T.Tensor((8,), "uint8"), B: T.Tensor((2, 8), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(8):
                short = T.alloc_var("uint8")
                short = A[i] + A[i]
                B[0, i] = short
                B[1, i] = short + 1

    a, b = np.array([0, 1, 100, 127, 128, 200, 254, 255], np.uint8), poisoned(2, 8, dtype="int32")
    run(main, a, b)
    assert b.tolist() == [(a + a).tolist(), ((a + a).astype(int) + 1).tolist()]


def test_shifts_by_what_an_index_tells_stay_short(run):
    """Codes are taken out of bytes in bytes: nothing is widened that need not be."""

    @T.prim_func
    def main(A: T.Tensor((32,), "uint8"), B: T.Tensor((64,), "uint8")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                B[i] = (A[i // 2] >> (i % 2 * 4).astype("uint8")) & T.uint8(15)

    a, b = np.arange(32, dtype=np.uint8) * 7, poisoned(64, dtype="uint8")
    run(main, a, b)
    assert b.tolist() == [int(a[i // 2]) >> (i % 2 * 4) & 15 for i in range(64)]
    assert "cast[int32](A" not in tile.compile(main, target="interpret").ir("tile")
