"""Products without matrix instructions: how threads divide the rows and columns of the sums."""

from __future__ import annotations

from typing import Any

import pytest

import tile_api.language as T
from tile_core.ir.node import walk
from tile_core.ops.gemm import Gemm
from tile_core.simt.gemm.register_blocking import BlockTiling, block_tiling


def tiling(rows: int, columns: int, threads: int, *, policy: Any) -> BlockTiling:
    @T.prim_func
    def kernel(
        A: T.Tensor((rows, 16), "float32"),
        B: T.Tensor((columns, 16), "float32"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((rows, 16), "float32")
            b = T.alloc_shared((columns, 16), "float32")
            c = T.alloc_fragment((rows, columns), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True, clear_accum=True, policy=policy)
            T.copy(c, C)

    (op,) = (n for n in walk(kernel.kernel) if isinstance(n, Gemm))
    return block_tiling(op, threads)


@pytest.mark.parametrize("columns", [64, 128, 200])
def test_full_rows_are_divided_the_same_way(columns: int) -> None:
    found = tiling(64, columns, 128, policy=T.GemmWarpPolicy.FullRow)
    assert (found.rows, found.columns) == (16, 8)


@pytest.mark.parametrize("rows", [1, 2, 4, 7])
def test_few_rows_leave_no_thread_idle(rows: int) -> None:
    """One query of attention: 8 of 128 threads would do all the work."""
    square = tiling(rows, 128, 128, policy=T.GemmWarpPolicy.Square)
    full = tiling(rows, 128, 128, policy=T.GemmWarpPolicy.FullRow)
    assert full.threads == square.threads >= 64
