"""Parts of a block that wait for each other run to the end, or say why they cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import Deadlock
from tile_core.ir.node import walk
from tile_core.ir.verify import verify
from tile_core.passes.coroutines import Await
from tile_core.passes.count_signals import lower_signals, schedule_coroutines
from tile_core.passes.serialise_threads import serialise_threads

TARGETS = ("interpret", "cpu")


def product(stages: int, *, consumer_first: bool, late: int = 0) -> Any:
    """Return a product whose factors some warps copy and others multiply."""
    steps = 5

    @T.prim_func
    def main(
        A: T.Tensor((64, 160), "float16"),
        B: T.Tensor((160, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((stages, 64, 32), "float16")
            b = T.alloc_shared((stages, 32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128] * stages)
            free = T.alloc_barrier([128] * stages)

            @T.macro
            def consume():
                T.clear(c)
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(full[k % stages], k // stages % 2)
                    T.gemm(a[k % stages, :, :], b[k % stages, :, :], c)
                    T.mbarrier_arrive(free[k % stages])
                T.copy(c, C)

            @T.macro
            def produce():
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(free[k % stages], (k // stages + 1 + late) % 2)
                    T.tma_copy(A[0, k * 32], a[k % stages, :, :], barrier=full[k % stages])
                    T.tma_copy(B[k * 32, 0], b[k % stages, :, :], barrier=full[k % stages])
                    T.mbarrier_arrive(full[k % stages])

            if consumer_first:
                with T.ws(0):
                    consume()
                with T.ws(1):
                    produce()
            else:
                with T.ws(1):
                    produce()
                with T.ws(0):
                    consume()

    return main


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("consumer_first", [False, True])
def test_producers_and_consumers(target: str, stages: int, consumer_first: bool) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (64, 160)).astype("float16")
    b = rng.integers(-3, 4, (160, 64)).astype("float16")
    c = np.full((64, 64), -1, "float32")
    tile.compile(product(stages, consumer_first=consumer_first), target=target)(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))


@pytest.mark.parametrize("target", TARGETS)
def test_nobody_can_go_on(target: str) -> None:
    main = product(2, consumer_first=True, late=1)
    a, c = np.zeros((64, 160), "float16"), np.zeros((64, 64), "float32")
    with pytest.raises(Deadlock, match="wait for ever"):
        tile.compile(main, target=target)(a, a.T.copy(), c)


def test_no_wait_is_left() -> None:
    kernel = serialise_threads(lower_signals(product(2, consumer_first=True).kernel))
    assert any(isinstance(node, Await) for node in walk(kernel))
    done = schedule_coroutines(kernel)
    verify(done)
    assert not any(isinstance(node, Await) for node in walk(done))
    assert schedule_coroutines(done) is done


@pytest.mark.parametrize("target", TARGETS)
def test_threads_that_part_by_themselves(target: str) -> None:
    """A ring of two slots between threads, with variables and branches across the waits."""

    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            t = T.get_thread_binding()
            s = T.alloc_shared((2, 128), "int32")
            full = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([128, 128])
            if t < 128:
                for k in T.serial(4):
                    mine = B[t] + k * 0
                    T.barrier_wait(full[k % 2], k // 2 % 2)
                    if k % 2 == 0:
                        B[t] = mine + s[k % 2, 127 - t]
                    else:
                        B[128 + t] = B[128 + t] + s[k % 2, 127 - t]
                    T.barrier_arrive(free[k % 2])
            else:
                phase = T.alloc_var("int32", 1)
                for k in T.serial(4):
                    T.barrier_wait(free[k % 2], phase)
                    s[k % 2, t - 128] = A[(k % 2) * 128 + t - 128] * (k + 1)
                    T.barrier_arrive(full[k % 2])
                    if k % 2 == 1:
                        phase = 1 - phase

    a = np.arange(256, dtype="int32")
    b = np.zeros_like(a)
    tile.compile(main, target=target)(a, b)
    np.testing.assert_array_equal(b[:128], a[:128][::-1] * (1 + 3))
    np.testing.assert_array_equal(b[128:], a[128:][::-1] * (2 + 4))


@pytest.mark.parametrize("target", [*TARGETS, "cuda:sm_80@sim"])
def test_numbered_barriers_in_the_wrong_order(target: str) -> None:
    """What stands first waits for what stands behind it."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((32,), "int32")
            if t < 32:
                for k in T.serial(2):
                    T.sync_threads(1, 64)
                    B[t + k * 32] = s[31 - t] + k
                    T.sync_threads(2, 64)
            else:
                for k in T.serial(2):
                    s[t - 32] = A[t - 32 + k * 32]
                    T.named_barrier_arrive(1, 64)
                    T.sync_threads(2, 64)

    a = np.arange(64, dtype="int32")
    b = np.zeros_like(a)
    tile.compile(main, target=target)(a, b)
    np.testing.assert_array_equal(b[:32], a[:32][::-1])
    np.testing.assert_array_equal(b[32:], a[32:][::-1] + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_warps_that_wait_for_barriers_of_their_own(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), "int32")
            came = T.alloc_barrier([32] * 4)
            s[t] = A[t]
            T.mbarrier_arrive(came[t // 32])
            T.mbarrier_wait_parity(came[t // 32], 0)
            B[t] = s[t // 32 * 32 + 31 - t % 32]

    a = np.arange(128, dtype="int32")
    b = np.zeros_like(a)
    tile.compile(main, target=target)(a, b)
    np.testing.assert_array_equal(b, a.reshape(4, 32)[:, ::-1].ravel())


@pytest.mark.parametrize("target", TARGETS)
def test_variables_of_parts_and_loops_that_are_left(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64), "int32")
            phase = T.alloc_var("int32", 0)
            n = T.alloc_var("int32", 0)
            full = T.alloc_barrier([1, 128])
            free = T.alloc_barrier(128)
            n = 5
            with T.ws(1):
                while n < 11:
                    T.barrier_wait(full[1], phase)
                    phase = 1 - phase
                    if n == 9:
                        T.barrier_arrive(free)
                        break
                    B[n - 5] = s[0, n] + n
                    n += 1
                    T.barrier_arrive(free)
                B[7] = n
            with T.ws(0):
                for k in T.serial(9):
                    n += 2
                    T.tma_copy(A[0:2, 0:64], s, barrier=full[0])
                    s[0, 5 + k] = n
                    T.barrier_arrive(full[1])
                    T.barrier_wait(free, phase)
                    phase = 1 - phase
                    if k == 4:
                        break

    a, b = np.arange(128, dtype="int32").reshape(2, 64), np.zeros(8, "int32")
    tile.compile(main, target=target)(a, b)
    assert b.tolist() == [12, 15, 18, 21, 0, 0, 0, 9]
