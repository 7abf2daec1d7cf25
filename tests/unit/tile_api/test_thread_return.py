"""Threads that leave a kernel early do nothing of what follows, on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import ControlFlowError
from tile_core.ir.printer import print_kernel

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim")


def run(function: Any, target: str, *args: Any) -> np.ndarray:
    """Run a kernel and return the last argument."""
    tile.compile(function, target=target)(*args)
    return np.asarray(args[-1])


def test_a_branch_around_the_rest() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(4, threads=32) as bx:
            s = T.alloc_shared((32,), "float32")
            if bx > 1:
                T.thread_return()
            T.clear(s)
            A[bx] = 1.0

    assert print_kernel(main.kernel).splitlines()[2:] == [
        "    alloc s: shared float32[32]",
        "    if not (bx > 1):",
        "      @fill(dst=s[0:32], value=0.0)",
        "      A[bx] = 1.0",
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_whole_blocks_leave(target: str) -> None:
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32) + 1, threads=32) as bx:
            s = T.alloc_shared((32,), "float32")
            if bx * 32 >= n:
                T.thread_return()
            T.copy(A[bx * 32], s)
            for i in T.Parallel(32):
                B[bx * 32 + i] = s[i] + 1

    for size in (1, 31, 64, 67):
        a = np.arange(size, dtype="float32")
        np.testing.assert_array_equal(run(main, target, a, np.zeros_like(a)), a + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_some_threads_leave_and_the_others_meet(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((96,), "float32"), B: T.Tensor((96,), "float32")):
        with T.Kernel(1, threads=96):
            tx = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            if tx >= 64:
                B[tx] = -2.0
                T.thread_return()
            s[tx] = A[tx]
            T.sync_threads()
            B[tx] = s[63 - tx]

    a = np.arange(96, dtype="float32")
    want = np.concatenate([a[:64][::-1], np.full(32, -2, "float32")])
    np.testing.assert_array_equal(run(main, target, a, np.zeros_like(a)), want)


@pytest.mark.parametrize("target", TARGETS)
def test_loops_are_left_for_good(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 8), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = 0
            for i in T.serial(2):
                for j in T.serial(4):
                    if A[tx, i * 4 + j] == 3:
                        if i == 0:
                            T.thread_return()
                        else:
                            B[tx] += 100
                    B[tx] += 1
                if tx == 5:
                    T.thread_return()
                B[tx] += 10
            k = T.alloc_var("int32", 0)
            while k < 3:
                k += 1
                if k == tx:
                    T.thread_return()
                B[tx] += 1000
            if tx == 7:
                T.thread_return()
            else:
                B[tx] += 10000
            B[tx] += 100000

    a = np.random.default_rng(0).integers(0, 8, (64, 8)).astype("int32")
    want = np.zeros(64, "int32")
    for t in range(64):
        want[t] = expected(t, a[t])
    np.testing.assert_array_equal(run(main, target, a, np.full(64, -1, "int32")), want)


def expected(t: int, row: Any) -> int:
    """Return what one thread of the kernel above leaves behind."""
    total = 0
    for i in range(2):
        for j in range(4):
            if row[i * 4 + j] == 3:
                if i == 0:
                    return total
                total += 100
            total += 1
        if t == 5:
            return total
        total += 10
    for k in range(1, 4):
        if k == t:
            return total
        total += 1000
    return total if t == 7 else total + 110000


def test_elements_cannot_leave() -> None:
    def trace() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    if i > 3:
                        T.thread_return()
                    A[i] = 1.0

        return main.kernel

    with pytest.raises(ControlFlowError, match=r"T\.thread_return cannot stand in T\.Parallel"):
        trace()
