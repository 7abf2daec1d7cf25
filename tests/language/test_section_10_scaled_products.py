"""`T.gemm_blockscaled`: products of narrow floats whose groups along K have scales."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

MXFP8 = ("float8_e4m3fn", "float8_e8m0fnu", 32)
MXFP6 = ("float6_e2m3fn", "float8_e8m0fnu", 32)
MXFP4 = ("float4_e2m1fn", "float8_e8m0fnu", 32)
NVFP4 = ("float4_e2m1fn", "float8_e4m3fn", 16)
ON = [
    *((form, turned, where) for form in (MXFP8, NVFP4) for turned in (False, True)
      for where in ("interpret", "cpu")),
    (MXFP6, False, "cpu"),
    (MXFP4, False, "cpu"),
    (NVFP4, False, "cuda:sm_100a@sim"),
    (MXFP8, True, "cuda:sm_80@sim"),
    (MXFP8, False, "hip:gfx942@sim"),
]  # fmt: skip
M, N, STEP, STEPS = 128, 16, 64, 2


def product(form: tuple[str, str, int], turned: bool) -> Any:
    """Return a product in two steps; with `turned` K is along columns of A and rows of B."""
    kind, scale, group = form
    depth = STEP * STEPS
    stages = 1 if "float4" in kind else 2  # copies of those have a byte for each element

    def matrix(rows: int, columns: int, along_rows: bool) -> tuple[int, int]:
        return (rows, columns) if along_rows else (columns, rows)

    def at(k: Any) -> tuple[Any, Any]:
        return (k, 0) if turned else (0, k)

    @T.prim_func
    def kernel(
        A: T.Tensor(matrix(M, depth, not turned), kind),
        B: T.Tensor(matrix(N, depth, not turned), kind),
        SFA: T.Tensor((M, depth // group), scale),
        SFB: T.Tensor((N, depth // group), scale),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared(matrix(M, STEP, not turned), kind)
            b = T.alloc_shared(matrix(N, STEP, not turned), kind)
            sfa = T.alloc_shared((M, depth // group), scale)
            sfb = T.alloc_shared((N, depth // group), scale)
            c = T.alloc_fragment((M, N), "float32")
            T.copy(SFA, sfa)
            T.copy(SFB, sfb)
            T.clear(c)
            for s in T.Pipelined(STEPS, num_stages=stages):
                T.copy(A[at(s * STEP)], a)
                T.copy(B[at(s * STEP)], b)
                T.gemm_blockscaled(
                    a, b, c, sfa, sfb, turned, not turned, k_start=s * STEP,
                    sf_a_granularity_k=group, sf_b_granularity_k=group,
                )  # fmt: skip
            T.copy(c, C)

    return kernel


def numbers(rng: np.random.Generator, rows: int, form: tuple[str, str, int]) -> tuple[Any, Any]:
    """Return elements and scales whose products, and the sums of these, are exact in float32."""
    kind, scale, group = form
    values = rng.integers(-4, 5, (rows, STEP * STEPS)) / 2
    few = [0.25, 0.5, 1, 2, 4] if "e8m0" in scale else [0.25, 0.75, 1, 1.5, 3.5]
    scales = rng.choice(few, (rows, STEP * STEPS // group))
    return values.astype(getattr(ml_dtypes, kind)), scales.astype(getattr(ml_dtypes, scale))


@pytest.mark.parametrize(("form", "turned", "where"), ON)
def test_scaled_products_are_exact(form: tuple[str, str, int], turned: bool, where: str) -> None:
    rng = np.random.default_rng(1)
    (a, sfa), (b, sfb) = numbers(rng, M, form), numbers(rng, N, form)
    wide_a, wide_b = (
        x.astype(np.float64) * s.astype(np.float64).repeat(form[2], axis=1)
        for x, s in ((a, sfa), (b, sfb))
    )
    c = np.full((M, N), np.nan, np.float32)
    given = [np.ascontiguousarray(x.T) if turned else x for x in (a, b)]
    kernel = tile.compile(product(form, turned), target=where)
    kernel(*(stored(x, form[0]) for x in given), sfa, sfb, c)
    np.testing.assert_array_equal(c, (wide_a @ wide_b.T).astype(np.float32))
    if "sm_100a" in where:
        assert "tcgen05_mma_ts" in kernel.get_kernel_source()


def stored(x: Any, kind: str) -> Any:
    """Return elements as tensors have them: two of 4 bits to a byte, the first in the low half."""
    if kind != "float4_e2m1fn":
        return x
    codes = x.view(np.uint8) & 15
    return codes[:, 0::2] | codes[:, 1::2] << 4
