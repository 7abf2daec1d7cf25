"""Indices that wrap in the last iteration of a loop, which LLVM takes for indices that grow."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

rows, numbers = T.dynamic("rows"), T.dynamic("numbers")

FORMS = {
    "modulo": lambda j: (j + 1) % 16,
    "mask": lambda j: (j + 1) & 15,
    "mask of more bits": lambda j: (j + 17) & 15,
    "narrow number": lambda j: T.cast(T.cast(j * 16 + 16, "uint8"), "int32") // 16,
    "backwards": lambda j: (15 - j + 1) % 16,
}


def row_after(j: int, form: str) -> int:
    return FORMS[form](j) if form == "backwards" else (j + 1) % 16


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("target", ["interpret", "cpu", "cpu:haswell"])
@pytest.mark.parametrize("form", FORMS)
def test_the_last_row_is_followed_by_the_first(form: str, target: str) -> None:
    index = FORMS[form]

    @T.prim_func
    def main(
        A: T.Tensor((11, rows, 4), "bfloat16"),
        Which: T.Tensor((numbers,), "int32"),
        R: T.Tensor((4, 16, 4), "int32"),
        n: T.int32,
    ):
        with T.Kernel(1, 1, 1, threads=256) as (bx, by, bz):
            read = T.alloc_shared((4, 16, 4), "int32")
            kept = T.alloc_fragment((4, 16, 4), "bfloat16")
            T.copy(A[bz : bz + 4, 1 : 1 + 16, 0:4], read)
            T.copy(A[bz, by, 0], kept)
            for i, j, k in T.Parallel(4, 16, 4):
                if read[Which[bz] % 4, index(j), k].astype("float16") == 2.0:
                    kept[i, j, k] = kept[i, j, k]
                else:
                    kept[i, j, k] = T.max(T.min(n, 256), -256).astype("bfloat16")
            T.copy(kept, R)

    a = np.random.default_rng(5).integers(1, 4, (11, 32, 4))
    kernel = tile.compile(main, target=target)
    for which in range(4):
        found = np.full((4, 16, 4), 99, np.int32)
        kernel(a.astype(ml_dtypes.bfloat16), np.full(8, which, np.int32), found, -1)
        chosen = a[which, 1:17][[row_after(j, form) for j in range(16)]] == 2
        np.testing.assert_array_equal(found, np.where(chosen, a[0:4, 0:16], -1))
