"""Products that name an instruction: on machines that lack it, nothing but the product."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

TARGETS = ["interpret", "cpu", "cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim"]


@T.prim_func
def by_name(
    A: T.Tensor((128, 64), "float16"),
    B: T.Tensor((2, 64, 64), "float16"),
    C: T.Tensor((128, 64), "float32"),
):
    with T.Kernel(1, threads=128):
        a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((2, 64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(B, b)
        for k in T.serial(2):
            T.copy(A[k * 64, 0], a)
            T.warpgroup_arrive()
            T.wgmma_gemm(a, b[0, :, :], c, clear_accum=True)
            T.wgmma_gemm(a, b[1, :, :], c, transpose_B=True)
            T.warpgroup_commit_batch()
            T.wait_wgmma(1)
            T.warpgroup_wait(0)
            T.copy(c, C[k * 64, 0])


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", TARGETS)
def test_products_by_name(target: str) -> None:
    rng = np.random.default_rng(0)
    a: Any = rng.integers(-3, 4, (128, 64)).astype(np.float16)
    b: Any = rng.integers(-3, 4, (2, 64, 64)).astype(np.float16)
    c = np.full((128, 64), np.nan, np.float32)
    compiled = tile.compile(by_name, target=target)
    compiled(a, b, c)
    np.testing.assert_array_equal(c, a.astype("f4") @ (b[0] + b[1].T).astype("f4"))
    if target != "cpu" and target != "interpret":
        assert ("wgmma_ss" in compiled.get_kernel_source()) is (target == "cuda:sm_90a@sim")
