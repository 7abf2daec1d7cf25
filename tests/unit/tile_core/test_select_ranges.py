"""Branches between threads become statements for ranges of them, on every machine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import For, If, Kernel, Launch, OnThreads, Seq, Store
from tile_core.ir.verify import verify
from tile_core.ops.select_ranges import select_ranges
from tile_core.passes.thread_loops import ThreadLoops

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim")


def ranges(function: Any) -> list[tuple[int, int]]:
    """Return first and count of every range in a kernel, in order."""
    kernel = select_ranges(function.kernel)
    verify(kernel)
    found = [n for n in walk(kernel) if isinstance(n, OnThreads)]
    return sorted((n.first, n.count) for n in found)


Condition = Callable[[Any, Any], Any]
CONDITIONS: list[tuple[Condition, list[tuple[int, int]]]] = [
    (lambda t, n: t < 64, [(0, 64)]),
    (lambda t, n: T.And(t >= 64, t < 96), [(64, 32)]),
    (lambda t, n: t // 32 == 5, [(160, 32)]),
    (lambda t, n: t == 0, [(0, 1)]),
    (lambda t, n: T.And(t < 64, n > 3), [(0, 64)]),
    (lambda t, n: T.get_warp_group_idx() == 1, [(128, 128)]),
    (lambda t, n: t < 256, []),
    (lambda t, n: t < 0, []),
    (lambda t, n: t % 2 == 0, []),
    (lambda t, n: t < n, []),
]


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_conditions(condition: Condition, expected: list[tuple[int, int]]) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((64,), "float32")
            t = T.get_thread_binding()
            if condition(t, n):
                T.copy(A, s)

    assert ranges(main) == expected


def test_the_other_side_is_a_range_too() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=96):
            s = T.alloc_shared((64,), "float32")
            warp = T.get_thread_binding() // 32
            if warp == 0:
                T.copy(A, s)
            elif warp == 1:
                T.fill(s, 1)
            else:
                A[0] = 1.0

    kernel = select_ranges(main.kernel)
    assert "threads 32 count 64:\n      threads 0 count 32:" in print_kernel(kernel)
    assert not any(isinstance(n, If) for n in walk(kernel))


def test_what_threads_do_alone_stays() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            v = T.alloc_local((4,), "float32")
            if t < 32:
                T.clear(v)
                A[t] = v[0]

    assert select_ranges(main.kernel) is main.kernel


BARRIERS: list[tuple[Condition, bool, list[tuple[int, int]]]] = [
    (lambda t, n: t < 64, False, [(0, 64)]),  # whole warps may wait for each other
    (lambda t, n: t < 100, False, []),  # others may not
    (lambda t, n: t < 64, True, []),  # the other side comes to the barrier as well
]


@pytest.mark.parametrize(("condition", "both", "expected"), BARRIERS)
def test_barriers(condition: Condition, both: bool, expected: list[tuple[int, int]]) -> None:
    @T.prim_func
    def main(A: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            t = T.get_thread_binding()
            if condition(t, 0):
                T.sync_threads()
            else:
                if both:
                    T.sync_threads()
            A[t] = 1.0

    found = [r for r in ranges(main) if r != (64, 192)]
    assert found == expected


@pytest.mark.parametrize("threads", [(12, 1, 1), (4, 3, 1), (2, 3, 2)])
def test_loops_over_a_range(threads: tuple[int, int, int]) -> None:
    """Loops on the host visit each thread of the range once, in order."""
    x, y, z = T.Var("x", "int32"), T.Var("y", "int32"), T.Var("z", "int32")
    out = tile_buffer()
    launch = Launch((), (), (x, y, z), threads, Seq(()))
    for first, last in itertools.combinations(range(13), 2):
        loops = ThreadLoops(launch)
        with loops.only(first, last - first):
            body = loops.over_threads(Store(out, (loops.index,), loops.index + 1))
        got = np.zeros(12, "int32")
        from tile_core.interp import interpret

        grid = Launch((), (), (x, y, z), (1, 1, 1), body)
        interpret(Kernel("main", (out,), grid), [got])
        want = [k + 1 if first <= k < last else 0 for k in range(12)]
        assert got.tolist() == want
        assert math.prod(threads) == 12
        assert isinstance(body, (For, Store, If))


def tile_buffer() -> Any:
    """Return a parameter of twelve numbers."""
    from tile_core.dtypes import dtype_of
    from tile_core.ir.buffer import Buffer, Scope

    return Buffer("A", (12,), dtype_of("int32"), Scope.GLOBAL)


# Meaning ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_operators_of_ranges(target: str) -> None:
    """Copies, products, sums and loops of ranges, beside other ranges and the whole block."""

    @T.prim_func
    def main(
        A: T.Tensor((32, 32), "float16"),
        B: T.Tensor((32, 32), "float16"),
        C: T.Tensor((32, 32), "float32"),
        D: T.Tensor((32,), "float32"),
    ):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_shared((32, 32), "float32")
            f = T.alloc_fragment((32, 32), "float32")
            rows = T.alloc_fragment((32,), "float32")
            if tx // 128 == 1:
                T.copy(A, a)
            else:
                T.copy(B, b)
            T.sync_threads()
            if tx >= 64 and tx < 192:
                T.clear(f)
                T.gemm(a, b, f)
                T.copy(f, c)
            T.sync_threads()
            group = tx // 128
            if group == 0:
                g = T.alloc_fragment((32, 32), "float32")
                T.copy(c, g)
                T.reduce_sum(g, rows, dim=1)
                T.copy(rows, D)
            else:
                T.copy(c, C)

    a = (np.arange(1024) % 7 - 3).astype("float16").reshape(32, 32)
    b = (np.arange(1024) % 5 - 2).astype("float16").reshape(32, 32)
    c, d = np.full((32, 32), -1, "float32"), np.full(32, -1, "float32")
    tile.compile(main, target=target)(a, b, c, d)
    want = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(c, want)
    np.testing.assert_array_equal(d, want.sum(1))


@pytest.mark.parametrize("target", TARGETS)
def test_registers_and_barriers_of_a_range_are_its_own(target: str) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((96,), "float32"), B: T.Tensor((96,), "float32"), C: T.Tensor((192,), "float32")
    ):
        with T.Kernel(1, threads=96):
            tx = T.get_thread_binding(0)
            f = T.alloc_fragment((96,), "float32")
            s = T.alloc_shared((96,), "float32")
            n = T.alloc_var("int32")
            n = 0
            if tx < 32:
                T.clear(f)
                n = 1
                for i in T.Parallel(96):
                    f[i] = f[i] + 2
                T.sync_threads()
                T.copy(f, B)
            elif tx < 64:
                T.copy(A, f)
                T.sync_threads()
                for i in T.Parallel(96):
                    f[i] = f[i] + 3
                T.copy(f, s)
                n = tx
                T.sync_threads()
                C[96 + tx] = s[95 - tx]
            T.sync_threads()
            C[tx] = n

    a, b = np.arange(96, dtype="float32"), np.full(96, -1, "float32")
    c = np.full(192, -1, "float32")
    want = np.full(192, -1, "float32")
    want[:32], want[32:64], want[64:96] = 1, np.arange(32, 64), 0
    want[128:160] = 95 - np.arange(32, 64) + 3
    tile.compile(main, target=target)(a, b, c)
    np.testing.assert_array_equal(b, np.full(96, 2, "float32"))
    np.testing.assert_array_equal(c, want)


def test_a_vote_of_the_block_is_none_of_a_range() -> None:
    @T.prim_func
    def main(A: T.Tensor((96,), "int32")):
        with T.Kernel(1, threads=96):
            tx = T.get_thread_binding(0)
            if tx < 64:
                T.sync_threads()
                A[tx] = T.syncthreads_count(tx > 40)

    a = np.zeros(96, "int32")
    for target in ("interpret", "cpu"):
        tile.compile(main, target=target)(a)
        assert a.tolist() == [23] * 64 + [0] * 32
    with pytest.raises(UnsupportedOnTarget, match="asks all threads of the block, and 64 of them"):
        tile.compile(main, target="cuda:sm_80@sim")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [3, 4])
def test_a_condition_on_more_than_threads(target: str, n: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((320,), "float32"), B: T.Tensor((256,), "float32"), n: T.int32):
        with T.Kernel(1, threads=(32, 8)):
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            s = T.alloc_shared((256,), "float32")
            if ty >= 2 and n > 3 and ty < 4:
                for i in T.Parallel(256):
                    s[i] = A[i]
                T.sync_threads()
                for k in T.serial(4):
                    at = (ty - 2) * 32 + tx + k * 64
                    B[at] = s[255 - at]
            else:
                if ty < 2:
                    A[256 + ty * 32 + tx] = 7.0

    a, b = np.arange(320, dtype="float32"), np.full(256, -1, "float32")
    tile.compile(main, target=target)(a, b, n)
    if n > 3:
        np.testing.assert_array_equal(b, np.arange(255, -1, -1))
    else:
        assert (b == -1).all()
    assert (a[256:] == 7).all()
