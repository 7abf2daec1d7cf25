"""Start values of reducers count once, whoever keeps how many parts of them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

GPUS = ("cuda:sm_80@sim", "hip:gfx942@sim")
REDUCE = {"sum": lambda x: x.sum(1) + 5, "max": lambda x: np.maximum(x.max(1), 5)}


@T.macro
def reduced(A, scale, B, number, op):
    rows, columns = A.shape
    parts = T.alloc_reducer((rows,), "int32", op=op)
    total = T.alloc_fragment((rows,), "int32")
    T.reducer_init(parts, 5)
    for i, j in T.Parallel(rows, columns):
        T.reducer_update(parts[i], A[i, j] * scale[i])
    T.finalize_reducer(parts, total)
    T.copy(total, B[number, :])


def kernel(rows, columns, threads):
    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), "int32"),
        F: T.Tensor((rows,), "int32"),
        B: T.Tensor((2, rows), "int32"),
    ):
        with T.Kernel(1, threads=threads):
            scale = T.alloc_fragment((rows,), "int32")
            T.copy(F, scale)  # its holders run the loops
            [reduced(A, scale, B, number, op) for number, op in enumerate(REDUCE)]

    return main


@pytest.mark.in_turn(8)
@pytest.mark.parametrize(
    ("target", "threads"),
    [("interpret", 64), ("cpu", 64), *((gpu, n) for gpu in GPUS for n in (32, 64, 128))],
)
def test_a_start_counts_once(threads, target):
    """Threads that are no multiple of the rows leave some of a block without a part."""
    for rows, columns in ((5, 3), (7, 2), (3, 11), (4, 7), (1, 5), (13, 1), (6, 6)):
        rng = np.random.default_rng(0)
        given = rng.integers(-9, 9, (rows, columns)).astype("int32")
        scales = rng.integers(1, 4, rows).astype("int32")
        found = np.full((2, rows), -99, "int32")
        tile.compile(kernel(rows, columns, threads), target=target)(given, scales, found)
        wanted = [meaning(given * scales[:, None]) for meaning in REDUCE.values()]
        np.testing.assert_array_equal(found, wanted, str((rows, columns)))
