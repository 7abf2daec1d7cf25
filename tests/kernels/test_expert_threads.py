"""An expert's kernel: explicit threads, PTX instructions by name, shuffles, C++ text."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.gpu_kernels import products_by_instructions
from tile_core.errors import UnsupportedOnTarget
from tile_sim import checking

M, N, K = 48, 40, 64
warp_products = products_by_instructions(M, N, K)


def arguments() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    a = rng.integers(-4, 5, (M, K)).astype(np.float16)
    b = rng.integers(-4, 5, (N, K)).astype(np.float16)
    return a, b, np.full((M, N), np.nan, np.float32)


@pytest.mark.parametrize("order", ["forward", "random:1", "random:2", "random:3"])
def test_products_by_named_instructions(order: str) -> None:
    a, b, c = arguments()
    kernel = tile.compile(warp_products, target="cuda:sm_80@sim")
    with checking("all", schedule=order):
        kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_the_instructions_are_in_the_machine_code() -> None:
    ptx = tile.compile(warp_products, target="cuda:sm_80").ptx
    for instruction in (
        "cp.async.cg.shared.global",
        "ldmatrix.sync.aligned.m8n8.x4",
        "ldmatrix.sync.aligned.m8n8.x2",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ):
        assert instruction in ptx


@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_machines_without_them_say_so(target: str) -> None:
    with pytest.raises(UnsupportedOnTarget, match=r"T\.ptx_cp_async is an instruction of GPUs"):
        tile.compile(warp_products, target=target)
