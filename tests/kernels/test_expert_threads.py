"""An expert's kernel: explicit threads, PTX instructions by name, shuffles, C++ text."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_sim import checking

M, N, K = 48, 40, 64


@T.prim_func
def warp_products(
    A: T.Tensor((M, K), "float16"),
    B: T.Tensor((N, K), "float16"),
    C: T.Tensor((M, N), "float32"),
):
    """One warp per 16x8 tile of C: cp.async, ldmatrix and mma.sync written by hand."""
    with T.Kernel(N // 8, M // 16, threads=32) as (bx, by):
        lane = T.get_thread_binding(0)
        A_shared = T.alloc_shared((16, K), "float16")
        B_shared = T.alloc_shared((8, K), "float16")
        a = T.alloc_local((8,), "float16")
        b = T.alloc_local((4,), "float16")
        c = T.alloc_local((4,), "float32")
        T.clear(c)
        for r in T.unroll(4):
            i = r * 4 + lane // 8
            T.ptx_cp_async(
                T.access_ptr(A_shared[i, lane % 8 * 8], "w"),
                T.access_ptr(A[by * 16 + i, lane % 8 * 8], "r"),
                16,
            )
        for r in T.unroll(2):
            i = r * 4 + lane // 8
            T.ptx_cp_async(
                T.access_ptr(B_shared[i, lane % 8 * 8], "w"),
                T.access_ptr(B[bx * 8 + i, lane % 8 * 8], "r"),
                16,
            )
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        T.sync_threads()
        for k in T.serial(K // 16):
            T.ptx_ldmatrix(
                False, 4, ".b16", a, 0, A_shared, lane % 16 * K + k * 16 + lane // 16 * 8
            )
            T.ptx_ldmatrix(
                False, 2, ".b16", b, 0, B_shared, lane % 8 * K + k * 16 + lane // 8 % 2 * 8
            )
            T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, 0, b, 0, c, 0, False)
        for h in T.unroll(2):
            for e in T.unroll(2):
                C[by * 16 + h * 8 + lane // 4, bx * 8 + lane % 4 * 2 + e] = c[h * 2 + e]


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
