"""Tiles times columns of a tensor, within a loop: what many rows read is packed piece by piece."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tile_api as tile
import tile_api.language as T

BLOCK = 64


def _program(rows: int, depth: int, count: int, dtype: str, clears: bool, held: int) -> Any:
    """Return sums over two tensors, or the last, of A times columns; a tile holds `held` of K."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, depth), dtype),
        B: T.Tensor((2, depth, count), dtype),
        C: T.Tensor((rows, count), "float32"),
    ):
        with T.Kernel(T.ceildiv(count, BLOCK), threads=32) as block:
            left = T.alloc_shared((rows, held), dtype)
            right = T.alloc_shared((held, BLOCK), dtype)
            total = T.alloc_fragment((rows, BLOCK), "float32")
            T.copy(A[0:rows, 0:held], left)
            T.fill(total, 1.0)
            for n in T.serial(2):
                T.copy(B[n, 0:held, block * BLOCK : block * BLOCK + BLOCK], right)
                T.gemm(left, right, total, clear_accum=clears)
                for i, j in T.Parallel(rows, BLOCK):
                    total[i, j] = total[i, j] * 2.0
            T.copy(total, C[0:rows, block * BLOCK : block * BLOCK + BLOCK])

    return main


@pytest.mark.parametrize("clears", [False, True])
@pytest.mark.parametrize(
    ("rows", "depth", "count", "dtype", "held"),
    [
        (16, 40, 128, "float32", 40),  # few rows read it where it lies
        (17, 40, 128, "float32", 40),
        (32, 40, 100, "float32", 64),  # columns and rows of B that do not exist are zeros
        (32, 1000, 64, "float32", 1000),  # several steps along K
        (17, 40, 100, "bfloat16", 64),
    ],
)
def test_what_many_rows_read_is_packed(
    rows: int, depth: int, count: int, dtype: str, held: int, clears: bool
) -> None:
    torch.manual_seed(0)
    shapes = (rows, depth), (2, depth, count)
    a, b = (torch.randint(-3, 4, shape).to(getattr(torch, dtype)) for shape in shapes)
    program = _program(rows, depth, count, dtype, clears, held)
    kernel = tile.compile(program, target="cpu", out_idx=-1)
    first, second = (a.double() @ x.double() for x in b)
    wanted = 2 * second if clears else 4 + 4 * first + 2 * second
    torch.testing.assert_close(kernel(a, b).double(), wanted)
    assert ("b_panels" in str(kernel.ir("lowered"))) == (rows > 16)


def test_panels_hold_a_window_of_columns_not_all() -> None:
    program = _program(64, 256, 64, "float32", clears=True, held=256)
    kernel = tile.compile(program, target="cpu:haswell", out_idx=-1)
    panels = [line for line in str(kernel.ir("lowered")).splitlines() if "b_panels = " in line]
    assert len(panels) == 1, panels
    assert "((2, 256, 16)" in panels[0]
