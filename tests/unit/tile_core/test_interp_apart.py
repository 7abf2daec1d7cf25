"""What ranges of threads mean that go different ways: barriers in memory, engines, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import BarrierMisuse, Deadlock, LaunchError
from tile_core.interp import InterpretOptions, interpret
from tile_core.interp.mbarriers import Signal


def run(kernel: Any, *arrays: np.ndarray, **options: Any) -> None:
    """Interpret a kernel with every check."""
    interpret(kernel.kernel, arrays, options=InterpretOptions(**options))


def poisoned(*shape: int) -> np.ndarray:
    """Return numbers that no kernel here computes."""
    return np.full(shape, -77, np.int32)


# One barrier ---------------------------------------------------------------------------------


def test_a_phase_needs_all_arrivals_and_all_bytes() -> None:
    signal = Signal("bar", 2)
    assert signal.has_completed(1)
    assert not signal.has_completed(0)
    signal.expect(32)
    signal.arrive(2)
    assert not signal.has_completed(0)
    assert signal.lacks() == "phase 0 of bar lacks 32 bytes"
    signal.expect(-32)
    assert signal.has_completed(0)
    assert not signal.has_completed(1)
    assert signal.lacks() == "phase 1 of bar lacks 2 of 2 arrivals"


def test_bytes_may_come_before_they_are_announced() -> None:
    signal = Signal("bar", 1)
    signal.expect(-16)
    assert signal.lacks().endswith("1 of 1 arrivals and word of 16 bytes that came")
    signal.expect(16)
    assert not signal.has_completed(0)
    signal.arrive()
    assert signal.has_completed(0)


def test_more_arrivals_than_a_phase_needs_belong_to_the_next() -> None:
    signal = Signal("bar", 4)
    signal.arrive(6)
    assert (signal.phase, signal.arrived) == (1, 2)


# Ranges of threads ---------------------------------------------------------------------------


def test_every_thread_of_a_range_arrives() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=384):
            bar = T.alloc_barrier(256)
            with T.ws(0):
                T.mbarrier_wait_parity(bar, 0)
                A[0] = 1
            with T.ws(1, 2):
                T.mbarrier_arrive(bar)
                A[1] = 2

    a = poisoned(2)
    run(kernel, a)
    assert a.tolist() == [1, 2]


def test_ranges_keep_variables_of_their_own() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((2, 8), "int32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((8,), "int32")
            bar = T.alloc_barrier([128, 128])
            phase = T.alloc_var("int32", 0)
            with T.ws(0):
                for k in T.serial(3):
                    for i in T.Parallel(8):
                        S[i] = i + 10 * k
                    T.mbarrier_arrive(bar[0])
                    T.mbarrier_wait_parity(bar[1], phase)
                    phase = phase ^ 1
                A[0, 0] = phase
            with T.ws(1):
                total = T.alloc_fragment((8,), "int32")
                T.clear(total)
                for _ in T.serial(3):
                    T.mbarrier_wait_parity(bar[0], phase)
                    for i in T.Parallel(8):
                        total[i] += S[i]
                    T.mbarrier_arrive(bar[1])
                    phase = phase ^ 1
                T.copy(total, A[1, 0:8])

    a = poisoned(2, 8)
    run(kernel, a)
    assert a[0, 0] == 1
    assert a[1].tolist() == [3 * i + 30 for i in range(8)]


def test_atomics_are_of_the_threads_that_get_there() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((4,), "int32")
            T.atomic_add(A[0], 1)
            T.fill(S, 5)
            with T.ws(0):
                T.atomic_add(A[1], 1)
            with T.ws(0, 1):
                A[2] = S[1]
            T.atomic_add(A[3], 1)

    a = np.zeros(4, np.int32)
    run(kernel, a)
    assert a.tolist() == [256, 128, 5, 256]


def test_a_range_waits_for_its_own_threads_only() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((256,), "int32")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(0):
                S[tx] = tx
                T.sync_threads()
                A[tx] = S[127 - tx]
                T.mbarrier_arrive(bar)
            with T.ws(1):
                T.mbarrier_wait_parity(bar, 0)
                A[tx] = S[tx - 128] * 2

    a = poisoned(256)
    run(kernel, a)
    expected = np.arange(128)
    np.testing.assert_array_equal(a, np.concatenate([expected[::-1], expected * 2]))


def test_numbered_barriers_join_ranges() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((8,), "int32")
            with T.ws(1):
                T.sync_threads(3, 256)
                T.copy(S, A)
            with T.ws(0):
                T.fill(S, 4)
                T.named_barrier_arrive(3, 256)

    a = poisoned(8)
    run(kernel, a)
    assert (a == 4).all()


# Engines and clusters ------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_blocks_of_a_cluster_run_side_by_side(order: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 4), "int32"), B: T.Tensor((8, 4), "int32")):
        with T.Kernel(8, threads=128, cluster_dims=4) as bx:
            mine = T.alloc_shared((4,), "int32")
            theirs = T.alloc_shared((4,), "int32")
            bar = T.alloc_cluster_barrier(1)
            tx = T.get_thread_binding()
            rank = T.block_rank_in_cluster()
            T.copy(A[bx, 0:4], mine)
            if tx == 0:
                T.mbarrier_arrive_expect_tx(bar, 16)
            T.copy_cluster(mine, theirs, dst_block=(rank + 3) % 4, remote_barrier=bar)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(theirs, B[bx, 0:4])

    a = np.arange(32, dtype=np.int32).reshape(8, 4)
    b = poisoned(8, 4)
    run(kernel, a, b, block_order=order)
    np.testing.assert_array_equal(b, np.roll(a.reshape(2, 4, 4), -1, axis=1).reshape(8, 4))


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_one_block_fetches_for_those_of_its_mask(order: str) -> None:
    """Blocks 0 and 1 and blocks 2 and 3 share; the lower one's tensor row counts."""

    @T.prim_func
    def kernel(A: T.Tensor((4, 16), "int32"), B: T.Tensor((4, 16), "int32")):
        with T.Kernel(4, threads=128, cluster_dims=4) as bx:
            S = T.alloc_shared((1, 16), "int32")
            bar = T.alloc_cluster_barrier(128)
            rank = T.block_rank_in_cluster()
            mask = 3 << (rank // 2 * 2)
            T.tma_copy(
                A[rank // 2 * 2 : rank // 2 * 2 + 1, 0:16], S, barrier=bar, cluster_mask=mask
            )
            T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(S, B[bx : bx + 1, 0:16])

    a = np.arange(64, dtype=np.int32).reshape(4, 16)
    b = poisoned(4, 16)
    run(kernel, a, b, block_order=order)
    np.testing.assert_array_equal(b, a[[0, 0, 2, 2]])


def test_copies_bring_zeros_from_outside_and_keep_within_bounds() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((5, 16), "int32"), B: T.Tensor((5, 16), "int32")):
        with T.Kernel(2, threads=128) as bx:
            S = T.alloc_shared((4, 16), "int32")
            bar = T.alloc_barrier(128)
            T.tma_copy(A[bx * 4, 0], S, barrier=bar)
            T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            for i, j in T.Parallel(4, 16):
                S[i, j] += 1
            T.tma_copy(S, B[bx * 4, 0])
            T.tma_store_arrive()
            T.tma_store_wait(0)

    a = np.arange(80, dtype=np.int32).reshape(5, 16)
    b = poisoned(5, 16)
    run(kernel, a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_a_cluster_that_does_not_divide_the_grid_is_refused_at_the_launch() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((T.dynamic("n"),), "int32")):
        with T.Kernel(A.shape[0], threads=128, cluster_dims=2) as bx:
            A[bx] = bx

    run(kernel, poisoned(4))
    with pytest.raises(LaunchError, match="a grid of 3 blocks is not made of clusters of 2"):
        run(kernel, poisoned(3))


def test_a_block_is_not_reached_before_it_has_begun() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32")):
        with T.Kernel(2, threads=128, cluster_dims=2) as bx:
            S = T.alloc_shared((4,), "int32")
            T.copy(A, S)
            T.copy_cluster(S, S, dst_block=1 - bx)

    with pytest.raises(BarrierMisuse, match="block 1 of the cluster is reached before it"):
        run(kernel, poisoned(4))


def test_a_ring_whose_consumer_forgets_to_release_stops() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 16), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((2, 16), "int32")
            full = T.alloc_barrier([128] * 2)
            empty = T.alloc_barrier([128] * 2)
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty[k % 2], k // 2 % 2 ^ 1)
                    T.tma_copy(A[k, 0], S[k % 2, 0:16], barrier=full[k % 2])
                    T.mbarrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    if k < 2:
                        T.copy(S[k % 2, 0:16], B)

    with pytest.raises(Deadlock) as caught:
        run(kernel, np.ones((64, 16), np.int32), poisoned(16))
    told = [note.text for note in caught.value.notes]
    assert told == [
        "128 threads from 0 on wait here: phase 1 of full[0] lacks 128 of 128 arrivals",
        "128 threads from 128 on wait here: phase 0 of empty[0] lacks 128 of 128 arrivals",
    ]


def test_the_interpreter_is_a_target_for_all_of_it() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=128):
            T.pdl_sync()
            T.fence_proxy_async()
            T.warpgroup_arrive()
            T.warpgroup_commit_batch()
            T.warpgroup_wait(0)
            A[0] = 3
            T.pdl_trigger()

    a = poisoned(4)
    tile.compile(kernel, target="interpret")(a)
    assert a[0] == 3
