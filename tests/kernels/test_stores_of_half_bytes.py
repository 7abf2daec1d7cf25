"""Loops that store 4-bit elements of which threads hold single ones, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_sim import checking

TARGETS = ("cuda:sm_80@sim", "hip:gfx942@sim")
FORMS = ("value", "branch", "let", "turned", "rounds", "again")
NARROW = {"int4": "int32", "float4_e2m1fn": "float32", "uint4": "int8"}


def stores(form: str, rows: int, columns: int, threads: int, dtype: str) -> Any:
    """Return a kernel that stores a fragment of `rows` by `columns` elements."""
    wide, extent = NARROW[dtype], T.dynamic("m")
    stored = (extent, rows if form == "turned" else columns)

    @T.prim_func
    def main(A: T.Tensor((rows, columns), wide), B: T.Tensor(stored, dtype), n: T.int32):
        with T.Kernel(1, threads=threads):
            f = T.alloc_fragment((rows, columns), wide)
            T.copy(A, f)
            if form == "branch":
                for i, j in T.Parallel(rows, columns):
                    if i + j // 2 < n:
                        B[i, j] = T.cast(f[i, j] + f[i, j], dtype)
                    else:
                        B[i, j] = T.cast(1, dtype)
            elif form == "let":
                for i, j in T.Parallel(rows, columns):
                    x = f[i, j] - 1
                    row = (i + 1) % rows
                    f[i, j] = x
                    B[row, j] = T.cast(f[i, j], dtype)
            elif form == "turned":
                for i, j in T.Parallel(rows, columns):
                    B[j, i] = T.cast(f[i, j], dtype)
            else:
                for _ in range(3 if form == "rounds" else 1):
                    for i, j in T.Parallel(rows, columns):
                        f[i, j] = f[i, j] + 1
                        B[i, j] = T.cast(f[i, j], dtype)
            if form == "again":
                for i, j in T.Parallel(rows, columns):
                    f[i, j] = T.cast(B[i, j], wide) - f[i, j]
                for i, j in T.Parallel(rows, columns):
                    B[i, j] = T.cast(f[i, j], dtype)

    return main


def result(
    kernel: Any,
    target: str,
    given: np.ndarray,
    shape: tuple[int, int],
    rest: tuple[int, ...] = (3,),
) -> np.ndarray:
    found = np.full(shape, 0x5A, np.uint8)
    with checking("all"):
        tile.compile(kernel, target=target)(given, found, *rest)
    return found


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("form", "shape", "threads", "dtype"),
    [
        *((form, (12, 24), 64, "uint4") for form in FORMS),
        *((form, (6, 2), 64, "int4") for form in FORMS),  # several threads hold each element
        ("value", (16, 16), 256, "float4_e2m1fn"),
    ],
)
def test_pairs_are_brought_together(
    form: str, shape: tuple[int, int], threads: int, dtype: str
) -> None:
    rows, columns = shape
    kernel = stores(form, rows, columns, threads, dtype)
    given = np.random.default_rng(0).integers(0, 3, shape).astype(NARROW[dtype])
    # Without the last row, what hangs over is not stored.
    packed = (columns - 1, rows // 2) if form == "turned" else (rows - 1, columns // 2)
    expected = result(kernel, "interpret", given, packed)
    for target in TARGETS:
        np.testing.assert_array_equal(result(kernel, target, given, packed), expected)


def test_loops_without_registers_run_along_the_rows_that_they_store() -> None:
    @T.prim_func
    def main(A: T.Tensor((6, 10), "int32"), B: T.Tensor((10, 6), "int4"), n: T.int32):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(6, 10):
                B[j, i] = A[i, j]

    given = np.random.default_rng(0).integers(-8, 8, (6, 10)).astype(np.int32)
    expected = result(main, "interpret", given, (10, 3))
    for target in TARGETS:
        np.testing.assert_array_equal(result(main, target, given, (10, 3)), expected)


def test_a_place_that_only_its_holder_knows_is_stored_alone() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int4")):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((4, 8), "int32")
            T.copy(A, f)
            for i, j in T.Parallel(4, 8):
                B[i, f[i, j]] = j - 4

    given = np.random.default_rng(0).permuted(np.tile(np.arange(8), (4, 1)), axis=1)
    expected = result(main, "interpret", given.astype(np.int32), (4, 4), ())
    for target in TARGETS:
        found = result(main, target, given.astype(np.int32), (4, 4), ())
        np.testing.assert_array_equal(found, expected)
