"""What a step of a product adds to its accumulator is summed on its own before."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

STEPS, DEPTH = 3, 64


@pytest.mark.parametrize(("rows", "columns"), [(32, 48), (19, 21)])
def test_small_products_are_not_lost_beside_a_large_sum(rows: int, columns: int) -> None:
    """Beside 2 ** 24 each 1 is rounded away, 64 of them are not."""

    @T.prim_func
    def main(A: T.Tensor((rows, DEPTH), "float32"), C: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=32):
            left = T.alloc_shared((rows, DEPTH), "float32")
            right = T.alloc_fragment((DEPTH, columns), "float32")
            total = T.alloc_fragment((rows, columns), "float32")
            T.copy(A, left)
            T.fill(total, 2.0**24)
            for n in T.serial(STEPS):
                for i, j in T.Parallel(DEPTH, columns):
                    right[i, j] = T.if_then_else(n + j >= 0, 1.0, 0.0)
                T.gemm(left, right, total)
            T.copy(total, C)

    kernel = tile.compile(main, target="cpu", out_idx=-1)
    found = kernel(np.ones((rows, DEPTH), "float32"))
    np.testing.assert_array_equal(found, np.full((rows, columns), 2**24 + STEPS * DEPTH, "float32"))
