"""Running totals along rows: four rows at a time are what one row after the other is."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T


def scanned(shape, dtype, dim, reverse, largest, in_place):
    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared(shape, dtype)
            b = a if in_place else T.alloc_shared(shape, dtype)
            T.copy(A, a)
            if largest:
                T.cummax(a, b, dim=dim, reverse=reverse)
            else:
                T.cumsum(a, b, dim=dim, reverse=reverse)
            T.copy(b, B)

    return tile.compile(main, out_idx=[1], target="cpu")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim", "dtype", "largest"),
    [((8, 13), 1, "float32", False), ((2, 4, 7), 2, "int64", False), ((8, 13), 1, "float16", True),
     ((12, 1), 1, "int8", True), ((8, 13), 0, "float32", False), ((6, 9), 1, "float32", False)],
)  # fmt: skip
def test_rows_at_once(shape, dim, dtype, largest, reverse, in_place):
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    found = scanned(shape, dtype, dim, reverse, largest, in_place)(x)
    fold = np.maximum if largest else np.add
    there = np.flip(x, dim) if reverse else x
    wanted = fold.accumulate(there, dim, dtype=dtype)
    np.testing.assert_array_equal(found, np.flip(wanted, dim) if reverse else wanted)


def test_four_rows_have_four_totals():
    text = scanned((8, 13), "float32", 1, False, False, True).get_kernel_source()
    assert "total3" in text
    text = scanned((6, 9), "float32", 1, False, False, True).get_kernel_source()
    assert "total3" not in text
