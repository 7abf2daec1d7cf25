"""Indices that are linear only where a condition on them holds: right in all lanes, and inside."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.emulated_features import emulated_features

TARGETS = ("interpret", "cpu", "cpu:haswell", "cpu:znver4", "cuda:sm_80@sim", "hip:gfx942@sim")
FORMS = {
    "the modulo is gone after the first": (lambda j, n: j >= 1, lambda j, n: (j + n - 1) % n),
    "the modulo is gone after some": (lambda j, n: j >= 8, lambda j, n: (j + n - 8) % n),
    "the modulo is gone before the last": (lambda j, n: j < n - 3, lambda j, n: (j + 3) % n),
    "the quotient is zero": (lambda j, n: j < n // 4, lambda j, n: j // (n // 4) * 4 + j),
    "the quotient is one": (
        lambda j, n: j >= n // 2,
        lambda j, n: j // (n // 2) * 6 + j - n // 2,
    ),
    "half of it": (lambda j, n: j >= n - 8, lambda j, n: j % (n - 8) + 1),
}


def kernel(holds, index, n, dtype, scope):
    size = T.dynamic("n") if dtype == "uint8" else n

    @T.prim_func
    def main(A: T.Tensor((size,), dtype), B: T.Tensor((size,), dtype)):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((n,), dtype)
            T.copy(A[0:n], s)
            for j in T.Parallel(n):
                if scope == "shared":
                    B[j] = T.if_then_else(holds(j, n), s[index(j, n)], T.cast(j % 99, dtype))
                else:
                    B[j] = T.if_then_else(holds(j, n), A[index(j, n)], T.cast(j % 99, dtype))

    return main


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scope", ["shared", "global"])
def test_each_lane_reads_its_element(form, scope, target):
    holds, index = FORMS[form]
    for n, dtype in ((24, "int32"), (24, "uint8"), (128, "int32"), (128, "uint8")):
        given = np.arange(100, n + 100).astype(dtype)
        wanted = [given[index(j, n)] if holds(j, n) else j % 99 for j in range(n)]
        found = np.full(n, 99, dtype)
        with emulated_features():
            tile.compile(kernel(holds, index, n, dtype, scope), target=target)(given, found)
        np.testing.assert_array_equal(found, np.array(wanted, dtype))
