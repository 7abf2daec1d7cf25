"""Blocks in panels on the emulator: same results, no further guards."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api as tile
import tile_api.language as T


def product(is_rasterised: bool) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((128, 32), "float16"),
        B: T.Tensor((32, 96), "float16"),
        C: T.Tensor((128, 96), "float32"),
    ):
        with T.Kernel(3, 4, threads=32) as (bx, by):
            A_s = T.alloc_shared((32, 32), "float16")
            B_s = T.alloc_shared((32, 32), "float16")
            C_l = T.alloc_fragment((32, 32), "float32")
            T.use_swizzle(3, enable=is_rasterised)
            T.clear(C_l)
            T.copy(A[by * 32, 0], A_s)
            T.copy(B[0, bx * 32], B_s)
            T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * 32, bx * 32])

    return main


def test_results_and_guards_stay() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-3, 4, (128, 32)).astype(np.float16)
    b = rng.integers(-3, 4, (32, 96)).astype(np.float16)
    sources = []
    for is_rasterised in (False, True):
        kernel = tile.compile(product(is_rasterised), target="cuda:sm_80@sim")
        c = np.full((128, 96), np.nan, np.float32)
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
        sources.append(kernel.get_kernel_source())
    plain, rasterised = sources
    assert "start_bx" not in plain
    assert "start_bx" in rasterised
    for guard in ("if (", "< 96", "< 128"):
        assert rasterised.count(guard) == plain.count(guard)
