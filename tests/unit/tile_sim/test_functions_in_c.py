"""The user's own functions on the emulator: what they write counts as written."""

from __future__ import annotations

import numpy as np

import tile_api as tile
import tile_api.language as T

TEXT = """
#include <stdint.h>
void squares(float *out, int n) { for (int i = 0; i < n; i++) out[i] = i * i; }
void numbers(int64_t *out, int n) { for (int i = 0; i < n; i++) out[i] = i; }
int64_t sum(const long long *restrict a, int n) { return n ? a[n - 1] + sum(a, n - 1) : 0; }
_Bool reads(float *a) { return a[1] == 1; }
"""


def test_tiles_that_functions_write():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((2,), "int64")):
        T.import_source(TEXT)
        with T.Kernel(1, threads=1):
            S = T.alloc_shared((8,), "float32")
            R = T.alloc_local((4,), "int64")
            T.call_extern("handle", "squares", S, 8)
            T.call_extern("handle", "numbers", R, 4)
            T.copy(S, A)
            B[0] = T.call_extern("int64", "sum", R, 4)
            B[1] = R[3] + T.cast(T.call_extern("bool", "reads", T.access_ptr(A, "r")), "int64")

    a, b = np.full(8, 77, np.float32), np.full(2, 77)
    tile.compile(main, target="cuda:sm_80@sim")(a, b)
    assert a.tolist() == [i * i for i in range(8)]
    assert b.tolist() == [6, 4]
