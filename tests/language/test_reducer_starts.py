"""Start values of reducers count once, whoever keeps how many parts of them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim")
REDUCE = {"sum": lambda x: x.sum(1) + 5, "max": lambda x: np.maximum(x.max(1), 5)}


def kernel(rows, columns, threads, op):
    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), "int32"),
        F: T.Tensor((rows,), "int32"),
        B: T.Tensor((rows,), "int32"),
    ):
        with T.Kernel(1, threads=threads):
            scale = T.alloc_fragment((rows,), "int32")
            parts = T.alloc_reducer((rows,), "int32", op=op)
            total = T.alloc_fragment((rows,), "int32")
            T.copy(F, scale)  # its holders run the loop
            T.reducer_init(parts, 5)
            for i, j in T.Parallel(rows, columns):
                T.reducer_update(parts[i], A[i, j] * scale[i])
            T.finalize_reducer(parts, total)
            T.copy(total, B)

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threads", [32, 64, 128])
def test_a_start_counts_once(threads, target):
    """Threads that are no multiple of the rows leave some of a block without a part."""
    for rows, columns in ((5, 3), (7, 2), (3, 11), (4, 7), (1, 5), (13, 1), (6, 6)):
        for op, meaning in REDUCE.items():
            rng = np.random.default_rng(0)
            given = rng.integers(-9, 9, (rows, columns)).astype("int32")
            scales = rng.integers(1, 4, rows).astype("int32")
            found = np.full(rows, -99, "int32")
            tile.compile(kernel(rows, columns, threads, op), target=target)(given, scales, found)
            np.testing.assert_array_equal(
                found, meaning(given * scales[:, None]), str((rows, columns, op))
            )
