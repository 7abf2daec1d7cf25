"""Products of warpgroups whose sums or first factors are parts of a fragment."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T


def parts_of_sums(rows: int, left: int, right: int, threads: int) -> Any:
    """Return a product in two pieces: the columns on the left, then those on the right."""
    columns = left + right

    @T.prim_func
    def main(
        A: T.Tensor((rows, 128), "float16"),
        B: T.Tensor((128, columns), "float16"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_shared((rows, 64), "float16")
            b = T.alloc_shared((64, columns), "float16")
            c = T.alloc_fragment((rows, columns), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b[:, 0:left], c[:, 0:left])
                T.gemm(a, b[:, left:columns], c[:, left:columns])
            T.copy(c, C)

    return main


def numbers(*shapes: tuple[int, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, shape).astype(np.float16) for shape in shapes]


@pytest.mark.parametrize(
    ("rows", "left", "right", "threads"),
    [(64, 64, 64, 128), (128, 32, 96, 128), (128, 8, 24, 256)],
)
def test_columns_of_sums(rows: int, left: int, right: int, threads: int) -> None:
    """Also of two blocks of rows: then registers of other columns are between these."""
    kernel = tile.compile(parts_of_sums(rows, left, right, threads), target="cuda:sm_90a@sim")
    assert len(re.findall(r"tile::wgmma_ss<", kernel.get_kernel_source())) == 2
    a, b = numbers((rows, 128), (128, left + right))
    c = np.full((rows, left + right), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b)


def test_sums_of_a_part_are_dropped_alone() -> None:
    """Those of the first round are: what else is in the fragment stays."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 128), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 1)
            for k in T.serial(3):
                T.gemm(a, b, c[:, 64:128], clear_accum=k == 0)
            T.copy(c, C)

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    assert "tile::wgmma_ss<64" in kernel.get_kernel_source()
    a, b = numbers((64, 64), (64, 64))
    c = np.full((64, 128), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c[:, :64], 1)
    np.testing.assert_array_equal(c[:, 64:], 3 * (a.astype(np.float32) @ b))


@pytest.mark.parametrize(("rows", "turned"), [(64, False), (128, False), (64, True)])
def test_steps_of_a_factor_in_registers(rows: int, turned: bool) -> None:
    shape = (128, rows) if turned else (rows, 128)

    @T.prim_func
    def main(
        A: T.Tensor(shape, "float16"),
        B: T.Tensor((128, 64), "float16"),
        C: T.Tensor((rows, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment(shape, "float16")
            b = T.alloc_shared((128, 64), "float16")
            c = T.alloc_fragment((rows, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            if turned:
                T.gemm(a[0:32, :], b[0:32, :], c, transpose_A=True)
                T.gemm(a[32:128, :], b[32:128, :], c, transpose_A=True)
            else:
                T.gemm(a[:, 0:32], b[0:32, :], c)
                T.gemm(a[:, 32:128], b[32:128, :], c)
            T.copy(c, C)

    kernel = tile.compile(main, target="cuda:sm_90a@sim")
    assert len(re.findall(r"tile::wgmma_rs<", kernel.get_kernel_source())) == 2
    a, b = numbers(shape, (128, 64))
    c = np.full((rows, 64), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, (a.T if turned else a).astype(np.float32) @ b)


def test_parts_whose_columns_groups_would_share_are_left_to_others() -> None:
    """Each group has columns of its own of the whole, and would have others of the part."""
    kernel = tile.compile(parts_of_sums(64, 64, 64, 256), target="cuda:sm_90a@sim")
    notes = {note.message for note in kernel.remarks("missed")}
    assert (
        "this matrix product uses no warpgroup MMA: C is a part of 'c', whose columns several "
        "warpgroups would have" in notes
    )
    a, b = numbers((64, 128), (128, 128))
    c = np.full((64, 128), np.nan, np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b)
