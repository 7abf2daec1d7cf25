"""Parts of 4-bit tensors that begin or end within a byte, against the interpreter.

Neighbours in a byte belong to other threads, other blocks, or nobody: what lies beside a part is
kept, and the emulator finds no two threads that store one element.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_sim import checking

TARGETS = ("cuda:sm_80@sim", "hip:gfx942@sim", "cuda:sm_90a@sim")
PARTS = ((7, "int4", "int32", 32), (13, "float4_e2m1fn", "float32", 64), (1, "uint4", "int8", 32))


def tensors(size: int, dtype: str, wide: str) -> tuple[Any, ...]:
    return (T.Tensor((size,), wide), *(T.Tensor((size,), dtype) for _ in range(4)))


def copies(n: int, size: int, dtype: str, wide: str, threads: int) -> Any:
    source, *_, narrow = tensors(size, dtype, wide)

    @T.prim_func
    def main(A: source, B: narrow, C: narrow, D: narrow, E: narrow, at: T.int32):
        with T.Kernel(3, threads=threads) as bx:
            tile_ = T.alloc_shared((n,), wide)
            part = T.alloc_fragment((n,), wide)
            T.copy(A[bx * n : bx * n + n], tile_)
            T.copy(A[bx * n : bx * n + n], part)
            T.copy(tile_, B[bx * n : bx * n + n])
            T.copy(part, C[bx * n + at : bx * n + at + n])
            T.fill(D[bx * n : bx * n + n], 3)
            T.copy(A[bx * n : bx * n + n], E[bx * n + at : bx * n + at + n])

    return main


def loops(n: int, size: int, dtype: str, wide: str, threads: int) -> Any:
    source, *_, narrow = tensors(size, dtype, wide)

    @T.prim_func
    def main(A: source, B: narrow, C: narrow, D: narrow, E: narrow, at: T.int32):
        with T.Kernel(3, threads=threads) as bx:
            part = T.alloc_fragment((n,), wide)
            T.copy(A[bx * n : bx * n + n], part)
            for i in T.Parallel(n):
                B[bx * n + i] = T.cast(part[i], dtype)
                if part[i] > 0:
                    C[bx * n + i + at] = T.cast(part[i] + 1, dtype)
            for i in T.Parallel(n):
                D[bx * n + i] = T.cast(T.cast(D[bx * n + i], wide) + 1, dtype)
            E[bx] = T.cast(bx, dtype)
            for i in T.serial(n):
                E[3 + bx * n + i] = T.cast(A[i], dtype)

    return main


def halves(n: int, size: int, dtype: str, wide: str, threads: int) -> Any:
    """Return a kernel in which conditions leave half of a byte to the other block."""
    source, *_, narrow = tensors(size, dtype, wide)

    @T.prim_func
    def main(A: source, B: narrow, C: narrow, D: narrow, E: narrow, at: T.int32):
        with T.Kernel(2, threads=threads) as bx:
            for i in T.Parallel(size):
                if i % 2 == bx:
                    B[i] = T.cast(A[i], dtype)
            for i in T.Parallel(size):
                if (A[i] > 0) == (bx == 0):
                    C[i] = T.cast(A[i], dtype)
            for i in T.Parallel(size // 2):
                for k in T.serial(2):
                    if bx == 0:
                        D[i * 2 + k] = T.cast(A[i * 2 + k], dtype)
            for i in T.Parallel(size // 2):
                place = i * 2 + bx
                E[place] = T.cast(A[place], dtype)

    return main


def threads_by_hand(n: int, size: int, dtype: str, wide: str, threads: int) -> Any:
    source, *_, narrow = tensors(size, dtype, wide)

    @T.prim_func
    def main(A: source, B: narrow, C: narrow, D: narrow, E: narrow, at: T.int32):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            B[tx] = T.cast(A[tx], dtype)
            for k in T.serial(2):
                C[tx * 2 + k] = T.cast(A[tx * 2 + k], dtype)
                if A[k] > 0:
                    D[tx * 2 + k] = T.cast(A[k], dtype)
            tile_ = T.alloc_shared((threads,), "int8")
            view = T.view(tile_, (2 * threads,), dtype)
            for k in T.serial(2):
                view[tx * 2 + k] = T.cast(A[tx], dtype)
            T.sync_threads()
            if tx < n:
                view[tx] = T.cast(A[tx + 1], dtype)
            T.sync_threads()
            E[tx] = view[tx]

    return main


def result(kernel: Any, target: str, given: np.ndarray, bytes_: int) -> list[np.ndarray]:
    values = np.random.default_rng(1).integers(0, 256, (4, bytes_)).astype(np.uint8)
    found = list(values & 0x77)  # no -0.0
    with checking("all"):
        tile.compile(kernel, target=target)(given, *found, 1)
    return found


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("form", [copies, loops, halves, threads_by_hand])
@pytest.mark.parametrize(("n", "dtype", "wide", "threads"), PARTS)
def test_what_lies_beside_a_part_is_kept(
    form: Any, n: int, dtype: str, wide: str, threads: int
) -> None:
    size = (3 * n + 1) // 2 * 2 + 2
    kernel = form(n, size, dtype, wide, threads)
    given = np.random.default_rng(0).integers(-3, 4, size).astype(wide)
    expected = result(kernel, "interpret", given, size // 2)
    for target in ("cpu", *TARGETS[: 3 if n == 7 else 2]):
        for a, b in zip(result(kernel, target, given, size // 2), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("columns", [7, 13])
def test_rows_and_tails(columns: int) -> None:
    """Ragged tiles of rows that do not fill their bytes; the last tile hangs over."""
    rows = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((rows, 26), "float16"), B: T.Tensor((rows, 26), "int4")):
        with T.Kernel(T.ceildiv(rows, 4), T.ceildiv(26, columns), threads=64) as (by, bx):
            part = T.alloc_fragment((4, columns), "float16")
            T.copy(A[by * 4, bx * columns], part)
            T.copy(part, B[by * 4, bx * columns])

    given = np.random.default_rng(0).integers(-8, 8, (9, 26)).astype(np.float16)
    expected = np.full((9, 13), 0x5A, np.uint8)
    tile.compile(main, target="interpret")(given, expected)
    for target in TARGETS[:2]:
        found = np.full((9, 13), 0x5A, np.uint8)
        with checking("all"):
            tile.compile(main, target=target)(given, found)
        np.testing.assert_array_equal(found, expected)
