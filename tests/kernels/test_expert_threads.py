"""An expert's kernel: explicit threads, PTX instructions by name, shuffles, C++ text."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
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


@T.prim_func
def offset_into_a_swizzled_tile(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        lane = T.get_thread_binding(0) % 32
        A_shared = T.alloc_shared((64, 64), "float16")
        sums = T.alloc_fragment((64, 64), "float32")
        a = T.alloc_local((8,), "float16")
        T.copy(A, A_shared)
        T.clear(sums)
        T.gemm(A_shared, A_shared, sums, transpose_B=True)
        T.sync_threads()
        T.ptx_ldmatrix(False, 4, ".b16", a, 0, A_shared, lane % 16 * 64)
        T.copy(sums, C)


def test_offsets_are_refused_where_they_would_mean_another_element() -> None:
    with pytest.raises(UnsupportedOnTarget) as caught:
        tile.compile(offset_into_a_swizzled_tile, target="cuda:sm_80")
    assert caught.value.message == (
        "an offset behind 'A_shared' does not find its element: the tile is not stored by rows"
    )
