"""Factors of float32 are rounded to xf32 if the user allows it, and the machine gains by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

KEY = "tl.allow_tf32"


def product() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float32"),
        B: T.Tensor((32, 64), "float32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float32")
            b = T.alloc_shared((32, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            T.copy(c, C)

    return main


@pytest.mark.parametrize(
    ("arch", "allowed", "function", "bits"),
    [
        ("gfx942", False, "mfma_32x32x2<", 23),
        ("gfx942", True, "mfma_32x32x4<", 10),
        ("gfx90a", True, "mfma_32x32x2<", 23),
    ],
)
def test_who_rounds(arch: str, allowed: bool, function: str, bits: int) -> None:
    configs = {KEY: True} if allowed else {}
    kernel = tile.compile(product(), target=f"hip:{arch}@sim", pass_configs=configs)
    assert function in kernel.get_kernel_source()
    whole = np.random.default_rng(1).integers(0, 1 << 20, (64, 32))
    a = (1 + whole / 2**20).astype(np.float32)
    c = np.full((64, 64), np.nan, np.float32)
    kernel(a, np.eye(32, 64, dtype=np.float32), c)
    assert np.abs(c[:, :32] - a).max() <= 2.0**-bits
    assert (c[:, :32] == a).all() == (bits == 23)
    assert (c[:, 32:] == 0).all()
