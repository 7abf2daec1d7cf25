"""Operators over no elements leave nothing behind; others are left alone."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.node import walk
from tile_core.ir.stmt import Parallel
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.reduce import Reduce
from tile_core.passes.eliminate_dead_code import eliminate_dead_code


def test_what_has_no_elements_is_dropped():
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 8), "int32")
            F = T.alloc_fragment((8,), "int32")
            T.copy(A[2:2, :], S[2:2, :])
            T.fill(S[:, n:n], 1)
            T.reduce_sum(S[0:0, :], F, dim=0)
            T.copy(A[0:n, :], S[0:n, :])
            for i, _j in T.Parallel(n, 0):
                S[i, 0] = 7

    found = eliminate_dead_code(main.kernel)
    kinds = [type(n) for n in walk(found.body) if isinstance(n, (Copy, Fill, Reduce, Parallel))]
    assert kinds == [Parallel, Copy]
    assert eliminate_dead_code(found) is found


@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim"])
@pytest.mark.parametrize("clear", [True, False])
def test_products_of_nothing(target: str, clear: bool) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64):
            a, c = T.alloc_shared((32, 32), "float16"), T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.fill(c, 3)
            T.gemm(a[0:32, 4:4], a[4:4, 0:32], c, clear_accum=clear)
            T.copy(c, C)

    c = np.ones((32, 32), "float32")
    tile.compile(main, target=target)(np.ones((32, 32), "float16"), c)
    np.testing.assert_array_equal(c, 0 if clear else 3)
