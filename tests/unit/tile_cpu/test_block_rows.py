"""Row-wise statements run a few rows at a time, and only where that changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.node import walk
from tile_core.ir.stmt import For
from tile_core.ir.verify import verify
from tile_core.target import Target
from tile_cpu.passes.block_rows import block_rows

CPU = Target("cpu")


def softmax(rows: int, columns: int) -> object:
    @T.prim_func
    def main(X: T.Tensor((100, columns), "float32"), Y: T.Tensor((100, columns), "float32")):
        with T.Kernel(T.ceildiv(100, rows)) as bx:
            x = T.alloc_fragment((rows, columns), "float32")
            top, total = T.alloc_fragment((rows,), "float32"), T.alloc_fragment((rows,), "float32")
            T.copy(X[bx * rows, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(rows, columns):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(rows, columns):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[bx * rows, 0])

    return main


def loops(kernel: object) -> list[For]:
    return [node for node in walk(kernel) if isinstance(node, For)]


@pytest.mark.parametrize(("rows", "columns", "rounds"), [(16, 1000, 8), (16, 200, 2), (8, 4096, 8)])
def test_a_row_wise_kernel_is_one_loop(rows: int, columns: int, rounds: int) -> None:
    function = softmax(rows, columns)
    blocked = block_rows(function.kernel, CPU)
    verify(blocked)
    (loop,) = loops(blocked)
    assert loop.stop.value == rounds
    x = np.random.default_rng(0).standard_normal((100, columns)).astype("float32")
    y = np.full_like(x, np.nan)
    tile.compile(function, target="cpu")(x, y)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_small_tiles_stay_as_they_are() -> None:
    kernel = softmax(8, 128).kernel
    assert block_rows(kernel, CPU) is kernel


def test_rows_that_look_at_their_neighbours_stay_apart() -> None:
    @T.prim_func
    def main(X: T.Tensor((32, 512), "float32"), Y: T.Tensor((32, 512), "float32")):
        with T.Kernel(1) as _:
            x, y = T.alloc_shared((32, 512), "float32"), T.alloc_shared((32, 512), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(32, 512):
                y[i, j] = x[31 - i, j]
            T.copy(y, Y)

    blocked = block_rows(main.kernel, CPU)
    reads = [loop for loop in loops(blocked)]
    assert len(reads) <= 1
    x = np.random.default_rng(0).standard_normal((32, 512)).astype("float32")
    y = np.full_like(x, np.nan)
    tile.compile(main, target="cpu")(x, y)
    np.testing.assert_array_equal(y, x[::-1])


def test_columns_are_not_rows() -> None:
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1) as _:
            x, s = T.alloc_shared((64, 64), "float32"), T.alloc_fragment((64,), "float32")
            T.copy(X, x)
            T.reduce_sum(x, s, dim=0)
            for i in T.Parallel(64):
                s[i] = s[i] * 2
            T.copy(s, Y)

    x = np.random.default_rng(0).integers(-9, 9, (64, 64)).astype("float32")
    y = np.full(64, np.nan, "float32")
    tile.compile(main, target="cpu")(x, y)
    np.testing.assert_array_equal(y, x.sum(0) * 2)
