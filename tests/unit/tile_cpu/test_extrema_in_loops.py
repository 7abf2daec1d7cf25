"""Loops that look for an extremum: every iteration counts, in vectors of LLVM's making too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_cpu.machine import MACHINES, missing_features

WIDTHS = ("x86-64-v2", "haswell", "skylake-avx512")
"""Processors with vectors of 16, 32 and 64 bytes."""
RUNNABLE = [name for name in WIDTHS if not missing_features(MACHINES[name])]


def columns_of(rows: int, columns: int, op: str, dtype: str) -> Any:
    """Return a kernel for the extremum of each column, as loops over rows and columns."""
    start = -100 if op == "max" else 100

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((columns,), dtype)):
        with T.Kernel(1, threads=32) as _:
            a = T.alloc_fragment((rows, columns), dtype)
            best = T.alloc_reducer((columns,), dtype, op=op)
            b = T.alloc_fragment((columns,), dtype)
            T.copy(A, a)
            T.reducer_init(best, start)
            for i, j in T.Parallel(rows, columns):
                T.reducer_update(best[j], a[i, j])
            T.finalize_reducer(best, b)
            T.copy(b, B)

    return main


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("machine", RUNNABLE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize(("rows", "columns"), [(5, 17), (9, 18)])
def test_every_row_counts(rows: int, columns: int, op: str, dtype: str, machine: str) -> None:
    kernel = tile.compile(columns_of(rows, columns, op, dtype), target=f"cpu:{machine}")
    for row in range(rows):  # the extremum is in this row
        a = np.zeros((rows, columns), dtype)
        a[row] = (1 if op == "max" else -1) * np.arange(1, columns + 1)
        b = np.full(columns, 1000, dtype)
        kernel(a, b)
        np.testing.assert_array_equal(b, a[row])


@pytest.mark.parametrize("machine", RUNNABLE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["max", "min"])
def test_rows_of_nan_do_not_count(op: str, dtype: str, machine: str) -> None:
    kernel = tile.compile(columns_of(5, 17, op, dtype), target=f"cpu:{machine}")
    for row in range(5):
        a = np.full((5, 17), np.nan, dtype)
        a[row] = np.arange(17) - 8
        b = np.full(17, 1000, dtype)
        kernel(a, b)
        np.testing.assert_array_equal(b, a[row])


def _in_branches() -> Any:
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((2, 32), "float32")):
        with T.Kernel(1, threads=32) as _:
            a = T.alloc_fragment((32,), "float32")
            b = T.alloc_local((2,), "float32")
            for i in T.Parallel(32):
                a[i] = A[i]
                if A[i] < 0.0:
                    a[i] = 0.0
            for i in T.Parallel(32):
                B[0, i] = T.if_then_else(0.0 < a[i], a[i], 0.0)
            for i in T.serial(32):
                if 2.0 < A[i]:
                    b[0] = 2.0
                else:
                    b[0] = A[i]
                b[1] = 2.0
                if b[0] < 2.0:
                    b[1] = b[0]
                B[1, i] = b[1]

    return main


@pytest.mark.parametrize("machine", RUNNABLE)
def test_nan_is_chosen_by_statements_as_written(machine: str) -> None:
    a = np.where(np.arange(32) % 3 == 0, np.nan, np.arange(32) - 9).astype("float32")
    b = np.full((2, 32), 1000, "float32")
    tile.compile(_in_branches(), target=f"cpu:{machine}")(a, b)
    wanted = np.where(a > 0, a, 0), np.where(a < 2, a, 2)
    np.testing.assert_array_equal(b, wanted)


@pytest.mark.parametrize("machine", WIDTHS)
@pytest.mark.parametrize("op", ["max", "min"])
def test_llvm_recognises_no_reduction(op: str, machine: str) -> None:
    text = tile.compile(
        columns_of(5, 17, op, "float32"), target=f"cpu:{machine}"
    ).get_kernel_source()
    assert f"llvm.{op}num" not in text
    assert f"llvm.vector.reduce.f{op}" not in text
