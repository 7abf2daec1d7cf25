"""Indices that are linear only where a condition on them holds: right in all lanes, and inside."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.emulated_features import emulated_features

TARGETS = ("interpret", "cpu", "cpu:haswell", "cpu:znver4", "cuda:sm_80@sim", "hip:gfx942@sim")
N = 24

FORMS = {
    "the modulo is gone after the first": (lambda j: j >= 1, lambda j: (j + N - 1) % N),
    "the modulo is gone after some": (lambda j: j >= 7, lambda j: (j + N - 7) % N),
    "the modulo is gone before the last": (lambda j: j < N - 3, lambda j: (j + 3) % N),
    "the quotient is zero": (lambda j: j < 5, lambda j: j // 5 * 4 + j),
    "the quotient is one": (lambda j: j >= 12, lambda j: j // 12 * 6 + j - 12),
    "half of it": (lambda j: j >= 16, lambda j: j % 16 + 1),
}


def kernel(holds, index, dtype, scope, dynamic):
    size = T.dynamic("n") if dynamic else N

    @T.prim_func
    def main(A: T.Tensor((size,), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((N,), dtype)
            T.copy(A[0:N], s)
            for j in T.Parallel(N):
                if scope == "shared":
                    B[j] = T.if_then_else(holds(j), s[index(j)], T.cast(100 + j, dtype))
                else:
                    B[j] = T.if_then_else(holds(j), A[index(j)], T.cast(100 + j, dtype))

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scope", ["shared", "global"])
def test_each_lane_reads_its_element(form, scope, target):
    holds, index = FORMS[form]
    for dtype, dynamic in (("int32", False), ("uint8", True)):
        given = np.arange(1, N + 1).astype(dtype)
        wanted = [given[index(j)] if holds(j) else 100 + j for j in range(N)]
        found = np.full(N, 77, dtype)
        with emulated_features():
            tile.compile(kernel(holds, index, dtype, scope, dynamic), target=target)(given, found)
        np.testing.assert_array_equal(found, np.array(wanted, dtype))
