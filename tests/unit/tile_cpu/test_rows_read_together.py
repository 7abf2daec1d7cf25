"""Sums over long rows: several rows, or several parts of one, are read at once."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T


def summed(rows: int, columns: int, bm: int, bn: int, target: str = "cpu:haswell"):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(rows // bm, threads=128) as bx:
            total = T.alloc_fragment((bm,), "float32")
            x = T.alloc_fragment((bm, bn), "float32")
            T.fill(total, 0.0)
            for ko in T.serial(columns // bn):
                T.copy(X[bx * bm : bx * bm + bm, ko * bn : ko * bn + bn], x)
                T.reduce_sum(x, total, dim=1, clear=False)
            T.copy(total, Y[bx * bm : bx * bm + bm])

    return tile.compile(main, target=target)


def offsets(kernel) -> set[int]:
    """Return the bytes between addresses in a kernel."""
    return {int(n) for n in re.findall(r"getelementptr i8, .* i64 (\d+)", kernel.kernel_source)}


def test_rows_that_are_pages_apart_are_read_together() -> None:
    assert offsets(summed(16, 4096, 4, 512)) >= {16_384, 32_768, 49_152}
    near = offsets(summed(16, 1024, 4, 512))
    assert near >= {32, 64, 96}  # four vectors of one row
    assert not near & {4096, 8192, 12_288}


def test_a_long_row_by_itself_is_read_in_parts() -> None:
    found = offsets(summed(4, 1 << 17, 1, 1 << 15))
    assert found >= {1 << 15, 2 << 15, 3 << 15}
    assert not offsets(summed(4, 1 << 17, 1, 2048)) & {2048, 4096 + 2048}


@pytest.mark.parametrize(
    "shape",
    [(8, 8192, 4, 512), (12, 4096, 4, 1024), (2, 80_010, 1, 40_005), (1, 32_768, 1, 32_768)],
)
def test_all_elements_are_added_once(shape) -> None:
    rows, columns, *_ = shape
    x = np.random.default_rng(0).integers(-4, 5, (rows, columns)).astype("float32")
    y = np.empty(rows, "float32")
    summed(*shape, target="cpu")(x, y)
    np.testing.assert_array_equal(y, x.sum(axis=-1))
