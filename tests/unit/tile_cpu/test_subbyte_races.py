"""Blocks of one launch that store the two elements of a byte run one after the other."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel, Launch
from tile_cpu.lowering.subbyte_races import may_share_bytes
from tile_cpu.python_caller import _packed

M, N = T.dynamic("m"), T.dynamic("n")


@T.prim_func
def tiles(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 8), threads=32) as (bx, by):
        part = T.alloc_fragment((8, 32), "int32")
        T.copy(A[by * 8, bx * 32], part)
        T.copy(part, B[by * 8, bx * 32])


@T.prim_func
def loops(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 8), threads=32) as (bx, by):
        for i, j in T.Parallel(8, 32):
            if by * 8 + i < 5:
                B[by * 8 + i, bx * 32 + j] = A[by * 8 + i, bx * 32 + j]
            else:
                B[by * 8 + i, bx * 32 + j] = 0


@T.prim_func
def rounds(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(M, threads=32) as bx:
        for j in T.serial(8):
            for k in T.serial(4):
                B[bx, j * 4 + k] = A[bx, k]


@T.prim_func
def odd_tiles(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(T.ceildiv(N, 7), M, threads=32) as (bx, by):
        part = T.alloc_fragment((7,), "int32")
        T.copy(A[by, bx * 7], part)
        T.copy(part, B[by, bx * 7])


@T.prim_func
def odd_begins(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(T.ceildiv(N, 8), M, threads=32) as (bx, by):
        for j in T.Parallel(8):
            B[by, bx * 8 + j + 1] = A[by, bx * 8 + j]


@T.prim_func
def turned(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(M, threads=32) as bx:
        for j in T.Parallel(32):
            B[j, bx] = A[bx, j]


@T.prim_func
def rows_of_a_view(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(N, threads=32) as bx:
        turned = T.reshape(B, (N, M))
        for j in T.Parallel(32):
            turned[bx, j] = A[j, bx]


@T.prim_func
def conditions(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(2, threads=32) as bx:
        for j in T.Parallel(32):
            if j % 2 == bx:
                B[0, j] = A[0, j]


@T.prim_func
def elements(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int4")):
    with T.Kernel(N, threads=32) as bx:
        B[0, bx] = A[0, bx]


def launch_of(kernel: Kernel) -> Launch:
    return next(node for node in walk(kernel) if isinstance(node, Launch))


@pytest.mark.parametrize(
    ("kernel", "shares"),
    [
        *((k, False) for k in (tiles, loops, rounds)),
        *((k, True) for k in (odd_tiles, odd_begins, turned, conditions, elements)),
        (rows_of_a_view, True),  # which may be of an odd number
    ],
)
def test_blocks_share_bytes_of_which_one_may_store_a_half(kernel: Any, shares: bool) -> None:
    assert may_share_bytes(launch_of(kernel.kernel), ConstraintSet()) is shares


def test_no_store_is_lost() -> None:
    rows = 50_000

    @T.prim_func
    def main(A: T.Tensor((rows, 16), "int8"), B: T.Tensor((rows, 16), "int4")):
        with T.Kernel(16, threads=32) as bx:
            for r in T.serial(rows):
                B[r, bx] = A[r, bx]

    given = np.random.default_rng(0).integers(-8, 8, (rows, 16)).astype(np.int8)
    expected = ((given[:, 0::2] & 15) | (given[:, 1::2] << 4)).view(np.uint8)
    kernel = tile.compile(main, target="cpu")
    for _ in range(3):
        found = np.zeros((rows, 8), np.uint8)
        kernel(given, found)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_results_of_half_a_byte_come_back_with_their_sign(name: str) -> None:
    values = [-8, -1, 3, 7] if name == "int4" else [15, 1, 8, 0]
    result = np.array([values], dtype=getattr(ml_dtypes, name))
    packed, undo = _packed(result)
    result[...] = 0
    undo()
    assert packed.shape == (1, 2)
    assert result.astype(np.int32).tolist() == [values]
