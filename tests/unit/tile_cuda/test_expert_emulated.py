"""Hand-written schedules for Hopper in the emulator, with every check and in several orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.driver import lower
from tile_core.errors import DataRace
from tile_core.plugins.host import installed_plugins
from tile_sim import checking

TARGET = "cuda:sm_90a@sim"
ORDERS = ("forward", "reverse", "random:1")


def two_consumers(M: int, N: int, K: int, arrivals: int) -> Any:
    """Return C = A @ B^T where each of two groups multiplies half of the rows by itself.

    `arrivals` threads of each group release a place.
    """
    rows, columns, depth, stages = 64, 64, 64, 2

    @T.macro
    def part(group, A_s, B_s, C, full, empty, bx, by):
        with T.ws(group):
            tx = T.get_thread_binding()
            C_l = T.alloc_fragment((rows, columns), "float32")
            T.clear(C_l)
            for k in T.serial(T.ceildiv(K, depth)):
                s = k % stages
                T.mbarrier_wait_parity(full[s], k // stages % 2)
                first = group * rows
                T.gemm(A_s[s, first : first + rows, :], B_s[s, :, :], C_l, transpose_B=True)
                if tx % 128 < arrivals:
                    T.mbarrier_arrive(empty[s])
            T.copy(C_l, C[(by * 2 + group) * rows, bx * columns])

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, 2 * rows), threads=384) as (bx, by):
            A_s = T.alloc_shared((stages, 2 * rows, depth), "float16")
            B_s = T.alloc_shared((stages, columns, depth), "float16")
            full = T.alloc_barrier([1] * stages)
            empty = T.alloc_barrier([2 * arrivals] * stages)
            tx = T.get_thread_binding()
            with T.ws(2):
                for k in T.serial(T.ceildiv(K, depth)):
                    s = k % stages
                    T.mbarrier_wait_parity(empty[s], k // stages % 2 ^ 1)
                    T.tma_copy(A[by * 2 * rows, k * depth], A_s[s, :, :], barrier=full[s])
                    T.tma_copy(B[bx * columns, k * depth], B_s[s, :, :], barrier=full[s])
                    T.sync_threads()  # who comes late would not find the phase that it waits for
                    if tx == 256:
                        T.mbarrier_arrive(full[s])
            part(0, A_s, B_s, C, full, empty, bx, by)
            part(1, A_s, B_s, C, full, empty, bx, by)

    return kernel


def multiplied(kernel: Any, M: int, N: int, K: int, order: str) -> None:
    """Run a product and compare it with NumPy's."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (N, K)))
    c = np.full((M, N), np.nan, np.float32)
    with checking("all", schedule=order):
        tile.compile(kernel, target=TARGET)(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [(128, 64, 320), (200, 72, 64)])
def test_groups_share_what_a_third_one_copies(size: tuple[int, int, int], order: str) -> None:
    multiplied(two_consumers(*size, arrivals=128), *size, order)


@pytest.mark.wrong_barriers
def test_one_thread_does_not_speak_for_its_group() -> None:
    size = (128, 64, 320)
    with pytest.raises(DataRace, match="which the wgmma of threads"):
        multiplied(two_consumers(*size, arrivals=1), *size, "random:3")


def test_a_thread_that_arrives_behind_its_copies_has_started_them() -> None:
    """The machine elects who copies only in programs that name no threads."""
    lowered = lower(two_consumers(128, 64, 64, 128).kernel, "cuda:sm_90a", installed_plugins())
    text = str(lowered.text("source"))
    assert "elect()" not in text
    assert "if (thread < 1) {" in text


def parts_in_a_loop(steps: int) -> Any:
    """Return C = A @ B^T whose loop holds the parts of both groups, instead of the reverse."""
    stages = 2

    @T.prim_func
    def kernel(
        A: T.Tensor((64, 64 * steps), "float16"),
        B: T.Tensor((64, 64 * steps), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256):
            A_s = T.alloc_shared((stages, 64, 64), "float16")
            B_s = T.alloc_shared((stages, 64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([128] * stages)
            with T.ws(0):
                T.clear(C_l)
            for k in T.serial(steps):
                s = k % stages
                with T.ws(1):
                    T.mbarrier_wait_parity(empty[s], k // stages % 2 ^ 1)
                    T.tma_copy(A[0, k * 64], A_s[s, :, :], barrier=full[s])
                    T.tma_copy(B[0, k * 64], B_s[s, :, :], barrier=full[s])
                    T.mbarrier_arrive(full[s])
                with T.ws(0):
                    T.mbarrier_wait_parity(full[s], k // stages % 2)
                    T.gemm(A_s[s, :, :], B_s[s, :, :], C_l, transpose_B=True)
                    T.mbarrier_arrive(empty[s])
            with T.ws(0):
                T.copy(C_l, C)

    return kernel


@pytest.mark.parametrize("order", ORDERS)
def test_parts_in_a_loop(order: str) -> None:
    multiplied(parts_in_a_loop(5), 64, 64, 320, order)


def normalised(group: int) -> Any:
    """Return x - max(x) of rows in parts that one group copies, and another works on."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 256), "float32"), C: T.Tensor((64, 256), "float32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((2, 64, 32), "float32")
            full = T.alloc_barrier([128] * 2)
            empty = T.alloc_barrier([128] * 2)
            with T.ws(1 - group):
                for k in T.serial(8):
                    T.mbarrier_wait_parity(empty[k % 2], k // 2 % 2 ^ 1)
                    T.copy(A[0, k * 32], S[k % 2, :, :])
                    T.mbarrier_arrive(full[k % 2])
            with T.ws(group):
                x = T.alloc_fragment((64, 32), "float32")
                most = T.alloc_fragment((64,), "float32")
                for k in T.serial(8):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    T.copy(S[k % 2, :, :], x)
                    T.mbarrier_arrive(empty[k % 2])
                    T.reduce_max(x, most, dim=1)
                    for i, j in T.Parallel(64, 32):
                        x[i, j] = x[i, j] - most[i]
                    T.copy(x, C[0, k * 32])

    return kernel


@pytest.mark.parametrize("target", ["interpret", TARGET])
@pytest.mark.parametrize("group", [0, 1])
def test_threads_may_copy_for_others_too(group: int, target: str) -> None:
    a = np.random.default_rng(1).integers(-99, 99, (64, 256)).astype(np.float32)
    c = np.full_like(a, np.nan)
    with checking("all", schedule="random:2"):
        tile.compile(normalised(group), target=target)(a, c)
    parts = a.reshape(64, 8, 32)
    np.testing.assert_array_equal(c, (parts - parts.max(axis=2, keepdims=True)).reshape(64, 256))


@pytest.mark.parametrize("target", ["interpret", TARGET])
def test_a_group_pipelines_its_own_copies(target: str) -> None:
    @T.macro
    def summed(group, A, C):
        with T.ws(group):
            S = T.alloc_shared((64, 32), "float16")
            total = T.alloc_fragment((64, 32), "float32")
            T.clear(total)
            for k in T.Pipelined(5, num_stages=3):
                T.copy(A[0, k * 32], S)
                for i, j in T.Parallel(64, 32):
                    total[i, j] += S[i, j] * (group + 1)
            T.copy(total, C[group, :, :])

    @T.prim_func
    def kernel(A: T.Tensor((64, 160), "float16"), C: T.Tensor((2, 64, 32), "float32")):
        with T.Kernel(1, threads=256):
            summed(0, A, C)
            summed(1, A, C)

    a = np.random.default_rng(1).integers(-9, 9, (64, 160)).astype(np.float16)
    c = np.full((2, 64, 32), np.nan, np.float32)
    with checking("all", schedule="random:2"):
        tile.compile(kernel, target=target)(a, c)
    sums = a.reshape(64, 5, 32).astype(np.float32).sum(axis=1)
    np.testing.assert_array_equal(c, np.stack([sums, 2 * sums]))
