"""Blocks of AMD GPUs have one barrier: what some threads would wait at alone is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget

TARGET = "hip:gfx942@sim"


def reversed_by(number: int | None, count: int | None) -> Any:
    @T.prim_func
    def main(X: T.Tensor((128,), "int32"), Y: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            tile_of = T.alloc_shared((128,), "int32")
            tile_of[tx] = X[tx]
            T.sync_threads(number, count)
            Y[tx] = tile_of[127 - tx]

    return main


@pytest.mark.parametrize(("number", "count"), [(None, None), (3, None), (2, 128)])
def test_a_numbered_barrier_of_all_threads_is_the_barrier(
    number: int | None, count: int | None
) -> None:
    x, y = np.arange(128, dtype=np.int32), np.full(128, -1, np.int32)
    compiled = tile.compile(reversed_by(number, count), target=TARGET)
    compiled(x, y)
    np.testing.assert_array_equal(y, x[::-1])
    assert "bar_sync" not in compiled.get_kernel_source()


def test_a_barrier_of_some_threads_is_refused() -> None:
    with pytest.raises(UnsupportedOnTarget) as caught:
        tile.compile(reversed_by(1, 64), target=TARGET)
    text = str(caught.value)
    assert "some threads of a block cannot wait apart from the others on gfx942" in text
    assert "hint: let all threads of the block wait for each other" in text


def test_a_range_of_threads_that_needs_a_barrier_is_refused() -> None:
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            shared = T.alloc_shared((64, 64), "float32")
            with T.ws(0):
                T.copy(X, shared)
                T.sync_threads()
                for i, j in T.Parallel(64, 64):
                    Y[i, j] = shared[j, i]

    with pytest.raises(UnsupportedOnTarget) as caught:
        tile.compile(main, target=TARGET)
    assert "the block needs barriers for parts of its threads, and gfx942 has none" in str(
        caught.value
    )
