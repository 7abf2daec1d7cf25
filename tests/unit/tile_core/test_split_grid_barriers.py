"""Barriers of the whole grid become borders between launches."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_core.interp import interpret
from tile_core.ir.node import walk
from tile_core.ir.stmt import Launch
from tile_core.ir.verify import verify
from tile_core.ops.control import Barrier
from tile_core.passes.split_grid_barriers import split_grid_barriers


def test_each_part_is_a_launch() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32"), k: T.int32):
        with T.Kernel(4, threads=8) as bx:
            tx = T.get_thread_binding()
            twice = bx * 2 + k
            A[bx, tx] = twice + tx
            T.sync_grid()
            v = T.alloc_local((1,), "int32")
            v[0] = A[3 - bx, tx]
            B[bx, tx] = v[0] + twice
            T.sync_grid()
            A[bx, tx] = B[(bx + 1) % 4, tx]

    kernel = split_grid_barriers(main.kernel)
    verify(kernel)
    launches = [n for n in walk(kernel) if isinstance(n, Launch)]
    assert len(launches) == 3
    assert not [n for n in walk(kernel) if isinstance(n, Barrier)]
    results = [np.full((2, 4, 8), -1, np.int32) for _ in range(2)]
    interpret(main.kernel, [*results[0], 5])
    interpret(kernel, [*results[1], 5])
    np.testing.assert_array_equal(results[1], results[0])


def test_kernels_without_them_are_left_alone() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            A[tx] = tx
            T.sync_threads()

    assert split_grid_barriers(main.kernel) is main.kernel


@pytest.mark.parametrize("kind", ["a loop", "a tile", "a value"])
def test_what_blocks_would_have_to_remember(kind: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=1) as bx:
            s = T.alloc_shared((1,), "int32")
            x = A[bx]
            s[0] = 1
            if kind == "a loop":
                for _ in T.serial(3):
                    T.sync_grid()
            else:
                T.sync_grid()
                A[3 - bx] = s[0] if kind == "a tile" else x

    with pytest.raises(UnsupportedOnTarget, match="blocks that run one after another"):
        split_grid_barriers(main.kernel)
