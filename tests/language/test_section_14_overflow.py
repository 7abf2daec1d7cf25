"""Integers of 32 bits that the caller or memory gave: sums and products of them wrap."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import poisoned

TARGETS = ["interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim"]
LOW, HIGH = -(1 << 31), (1 << 31) - 1
LIMITS = [0, 1, -1, HIGH, HIGH - 1, HIGH - 31, LOW, LOW + 1, LOW + 31, 1 << 30, -(1 << 30), 1 << 29]
COUNT = 32


@T.macro
def compute(A, R, first, i, n):
    """Ask of a number what follows from its bounds, if arithmetic were exact."""
    m = T.max(n, 0)
    R[first, i] = A[m + 5 + i]  # not below the tensor
    R[first + 1, i] = T.if_then_else(m * 4 + i >= 0, 1, 2)
    R[first + 2, i] = (m + i) // 7 + (m + i) % 7
    R[first + 3, i] = T.if_then_else(-T.min(n, 0) >= i, 1, 2)
    R[first + 4, i] = T.if_then_else((m << 2) + i < 0, 1, 2)
    R[first + 5, i] = T.cast(m + i, "int64") > 0
    R[first + 6, i] = A[T.min(n, 0) - 1 - i + COUNT]  # not above the tensor
    R[first + 7, i] = T.if_then_else(m * m + i >= 0, 1, 2)


@T.prim_func
def main(
    A: T.Tensor((COUNT,), "int32"),
    N: T.Tensor((1,), "int32"),
    R: T.Tensor((16, COUNT), "int32"),
    C: T.Tensor((2, COUNT), "int32"),
    n: T.int32,
):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((COUNT,), "int32")
        for i in T.Parallel(COUNT):
            compute(A, R, 0, i, n)
        for i in T.Parallel(COUNT):
            compute(A, R, 8, i, N[0])
        T.copy(A[T.max(n, 0) + 3], s)
        T.copy(s, C[0, 0])
        for i in T.Parallel(COUNT):
            C[1, i] = -1
        for i in T.Parallel(COUNT):
            C[1, T.max(n, 0) + 3 + i] = A[i]


def element(a: np.ndarray, at: np.ndarray) -> np.ndarray:
    inside = (at >= 0) & (at < COUNT)
    return np.where(inside, a[np.where(inside, at, 0)], 0)


def meaning(a: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the program computes, in NumPy's integers, which wrap."""
    i = np.arange(COUNT, dtype=np.int32)
    zero, one, x = np.int32(0), np.int32(1), np.full(COUNT, n, np.int32)
    m = np.maximum(x, zero)
    up = m + i
    rows = [
        element(a, m + np.int32(5) + i),
        np.where(m * np.int32(4) + i >= 0, 1, 2),
        up // np.int32(7) + up % np.int32(7),
        np.where(-np.minimum(x, zero) >= i, 1, 2),
        np.where((m << np.int32(2)) + i < 0, 1, 2),
        up.astype(np.int64) > 0,
        element(a, np.minimum(x, zero) - one - i + np.int32(COUNT)),
        np.where(m * m + i >= 0, 1, 2),
    ]
    at = m + np.int32(3) + i
    stored = np.full(COUNT, -1, np.int32)
    inside = (at >= 0) & (at < COUNT)
    stored[at[inside]] = a[inside]
    return np.array(rows, np.int32), np.array([element(a, at), stored], np.int32)


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_that_were_given_wrap(target: str) -> None:
    kernel = tile.compile(main, target=target)
    a = np.arange(1, COUNT + 1, dtype=np.int32)
    for n in LIMITS:
        r, c = poisoned(16, COUNT, dtype="int32"), poisoned(2, COUNT, dtype="int32")
        kernel(a, np.array([n], np.int32), r, c, n)
        with np.errstate(over="ignore"):
            rows, copied = meaning(a, n)
        np.testing.assert_array_equal(r, np.concatenate([rows, rows]), err_msg=f"{n}")
        np.testing.assert_array_equal(c, copied, err_msg=f"{n}")


@pytest.mark.parametrize("target", TARGETS)
def test_sums_with_numbers_beyond_indices_wrap(target: str) -> None:
    """Of threads, too: such a sum is no index."""

    @T.prim_func
    def main(R: T.Tensor((4, 32), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            R[0, tx] = T.max(T.min(tx + 2147483647, 64), -64)
            R[1, tx] = T.if_then_else(tx + 2147483647 > 0, 1, 2)
            R[2, tx] = T.max(-2147483647 - tx * 2, 7)
            n = T.if_then_else(T.infinity("float32") > T.cast(tx, "float32"), tx, 0)
            R[3, tx] = n + 2147483647

    r = poisoned(4, 32, dtype="int32")
    tile.compile(main, target=target)(r)
    i = np.arange(32, dtype=np.int32)
    with np.errstate(over="ignore"):
        up, down = i + np.int32(2**31 - 1), np.int32(1 - 2**31) - i * np.int32(2)
    expected = [np.clip(up, -64, 64), np.where(up > 0, 1, 2), np.maximum(down, 7), up]
    np.testing.assert_array_equal(r, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_conditions_that_wrap_prove_nothing_of_places(target: str) -> None:
    """What is outside of a tensor is not read, whatever the sums in a condition came to."""

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((6, 32), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            B[0, tx] = T.if_then_else(HIGH + tx >= 0, tx, A[tx])
            if n + 1 < 8:
                B[1, tx] = A[n]
            if n - 1 > 0 and n < 8:
                B[2, tx] = A[n - 1]
            if not (n * 2 >= 8):
                B[3, tx] = A[n]
            if n + tx < 8:
                B[4, tx] = A[n + tx]
            for i in T.Parallel(32):
                B[5, i] = A[n + i]

    def value(n: int) -> int:
        return n + 1 if 0 <= n < 8 else 0

    def wrapped(n: int) -> int:
        return (n - LOW) % (1 << 32) + LOW

    kernel = tile.compile(main, target=target)
    for n in (*LIMITS, 3, 7, 8, LOW + 2, HIGH - 5):
        a, b = np.arange(1, 9, dtype=np.int32), np.full((6, 32), -1, np.int32)
        kernel(a, b, n)
        i = range(32)
        expected = [
            [0] + [value(x) for x in range(1, 32)],
            [value(n) if wrapped(n + 1) < 8 else -1] * 32,
            [value(wrapped(n - 1)) if wrapped(n - 1) > 0 and n < 8 else -1] * 32,
            [value(n) if wrapped(n * 2) < 8 else -1] * 32,
            [value(wrapped(n + x)) if wrapped(n + x) < 8 else -1 for x in i],
            [value(wrapped(n + x)) for x in i],
        ]
        np.testing.assert_array_equal(b, expected, err_msg=f"{n}")


@pytest.mark.parametrize("target", TARGETS)
def test_names_of_sums_that_wrap_prove_nothing_of_places(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((3, 32), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.assume(n >= 0)
            scaled = n * 1000
            if scaled < 64:
                B[0, tx] = A[scaled]
            low = T.min(n + 5, 63)
            B[1, tx] = A[low]
            digit = (n + 7) % 64
            B[2, tx] = A[digit]

    def wrapped(n: int) -> int:
        return (n - LOW) % (1 << 32) + LOW

    def value(at: int) -> int:
        return at + 1 if 0 <= at < 64 else 0

    kernel = tile.compile(main, target=target)
    for n in (0, 3, 2147484, HIGH - 2, HIGH):
        a, b = np.arange(1, 65, dtype=np.int32), np.full((3, 32), -1, np.int32)
        kernel(a, b, n)
        scaled = wrapped(n * 1000)
        expected = [
            value(scaled) if scaled < 64 else -1,
            value(min(wrapped(n + 5), 63)),
            value(wrapped(n + 7) % 64),
        ]
        assert b[:, 0].tolist() == expected, n
        assert (b == b[:, :1]).all()
