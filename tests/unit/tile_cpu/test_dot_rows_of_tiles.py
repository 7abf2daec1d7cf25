"""Few rows times rows of a tensor, within a loop: dot products, and nothing is packed for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tile_api as tile
import tile_api.language as T

K, BLOCK = 40, 32


def _program(rows: int, count: int, dtype: str, clears: bool) -> Any:
    """Return the sum over two tensors, or the last, of A times their rows, `count` of each."""

    @T.prim_func
    def main(
        A: T.Tensor((rows, K), dtype),
        B: T.Tensor((2, count, K), dtype),
        C: T.Tensor((rows, count), "float32"),
    ):
        with T.Kernel(T.ceildiv(count, BLOCK), threads=32) as block:
            left = T.alloc_shared((rows, K), dtype)
            right = T.alloc_shared((BLOCK, K), dtype)
            total = T.alloc_fragment((rows, BLOCK), "float32")
            T.copy(A, left)
            T.fill(total, 1.0)
            for n in T.serial(2):
                T.copy(B[n, block * BLOCK : block * BLOCK + BLOCK, 0:K], right)
                T.gemm(left, right, total, transpose_B=True, clear_accum=clears)
                for i, j in T.Parallel(rows, BLOCK):
                    total[i, j] = total[i, j] * 2.0
            T.copy(total, C[0:rows, block * BLOCK : block * BLOCK + BLOCK])

    return main


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("clears", [False, True])
@pytest.mark.parametrize(
    ("rows", "count", "dtype"),
    [
        (1, 64, "float32"),
        (1, 45, "float16"),
        (4, 70, "int8"),
        (16, 33, "float32"),
        (16, 33, "int8"),
    ],
)
def test_few_rows(rows: int, count: int, dtype: str, clears: bool) -> None:
    torch.manual_seed(0)
    a, b = (torch.randint(-3, 4, s).to(getattr(torch, dtype)) for s in ((rows, K), (2, count, K)))
    kernel = tile.compile(_program(rows, count, dtype, clears), target="cpu", out_idx=-1)
    first, second = (a.double() @ x.double().T for x in b)
    wanted = 2 * second if clears else 4 + 4 * first + 2 * second
    torch.testing.assert_close(kernel(a, b).double(), wanted)
    is_packed = dtype == "int8" and rows > 4
    assert ("b_panels" in str(kernel.ir("lowered"))) == is_packed


def test_many_rows_are_worth_packing() -> None:
    kernel = tile.compile(_program(32, 64, "float32", True), target="cpu", out_idx=-1)
    assert "b_panels" in str(kernel.ir("lowered"))
