"""Sums over long rows, and products of one row: what is read at once from memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_cpu.gemm.register_tile_shape import RegisterTile, in_pairs_of_lines


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


@pytest.mark.parametrize(("depth", "sums"), [(4096, 4), (64, 6)])
def test_one_row_of_a_product_reads_what_comes_from_memory_in_pairs_of_lines(
    depth: int, sums: int
) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((1, depth), "float32"),
        B: T.Tensor((depth, 4096), "float32"),
        C: T.Tensor((1, 4096), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            acc = T.alloc_fragment((1, 2048), "float32")
            a = T.alloc_shared((1, 8), "float32")
            b = T.alloc_shared((8, 2048), "float32")
            T.fill(acc, 0.0)
            for ko in T.Pipelined(depth // 8, num_stages=2):
                T.copy(A[0:1, ko * 8 : ko * 8 + 8], a)
                T.copy(B[ko * 8 : ko * 8 + 8, bx * 2048 : bx * 2048 + 2048], b)
                T.gemm(a, b, acc)
            T.copy(acc, C[0:1, bx * 2048 : bx * 2048 + 2048])

    text = tile.compile(main, target="cpu:haswell").kernel_source
    loops = re.findall(r"((?:  %\S+ = phi <8 x float>.*\n)+)", text)
    assert max(group.count("phi") for group in loops) == sums


def test_whole_pairs_of_lines() -> None:
    assert in_pairs_of_lines(RegisterTile(1, 6), 32) == RegisterTile(1, 4)
    assert in_pairs_of_lines(RegisterTile(1, 4), 64) == RegisterTile(1, 4)
    assert in_pairs_of_lines(RegisterTile(1, 2), 32) == RegisterTile(1, 2)  # none is whole
