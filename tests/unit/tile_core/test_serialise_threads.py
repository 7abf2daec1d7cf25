"""Thread programs become loops between barriers, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api.language as T
from tile_core.analysis.uniformity import Uniformity, is_thread_program
from tile_core.errors import UnsupportedOnTarget
from tile_core.interp import interpret
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import For, Launch
from tile_core.ir.verify import verify
from tile_core.passes.serialise_threads import serialise_threads


def check(function: object) -> str:
    """Interpret a kernel before and after the pass; return the text after."""
    kernel = function.kernel
    serial = serialise_threads(kernel)
    assert serial is not kernel
    verify(serial)
    launch = next(n for n in walk(serial) if isinstance(n, Launch))
    assert not set(launch.thread_vars) & set(walk(launch.body))
    source = np.random.default_rng(0).integers(-9, 10, (2, 64)).astype("int32")
    results = [np.full((2, 64), -99, "int32") for _ in range(2)]
    interpret(kernel, [source, results[0]])
    interpret(serial, [source, results[1]])
    np.testing.assert_array_equal(results[1], results[0])
    return print_kernel(serial)


def test_private_memory_lives_across_a_barrier() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((64,), "int32")
            v = T.alloc_local((2,), "int32")
            v[0] = A[bx, tx]
            v[1] = v[0] * 2
            s[tx] = v[0]
            T.sync_threads()
            B[bx, tx] = s[63 - tx] + v[1]

    text = check(main)
    assert "v: shared int32[64, 2]" in text
    assert text.count("for tx") == 2


def test_one_loop_where_nobody_meets() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            total = T.alloc_var("int32", 0)
            for k in T.serial(tx + 1):
                total += A[bx, k]
            B[bx, tx] = total

    text = check(main)
    assert text.count("for tx") == 1
    assert "[64, 1]" not in text


def test_barriers_inside_uniform_loops() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((64,), "int32")
            s[tx] = A[bx, tx]
            T.sync_threads()
            for k in T.serial(6):
                step = 32 >> k
                if tx < step:
                    s[tx] = s[tx] + s[tx + step]
                T.sync_threads()
            B[bx, tx] = s[0]

    check(main)


def test_shuffles_votes_and_reductions_of_warps() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            x = A[bx, tx]
            a = T.shfl_xor(x, 5) + T.shfl_down(x, 3) * 2 + T.shfl_up(x, 7, 16) * 3
            b = T.shfl_sync(x, tx % 32 // 2)
            c = T.warp_reduce_max(x) + T.warp_reduce_sum(x)
            d = T.any_sync(x > 8) + T.all_sync(x > -10) * 2
            e = T.Cast("int32", T.ballot_sync(x > 0) & 255)
            B[bx, tx] = a + b + c + d + e + T.syncthreads_count(x > 0)

    check(main)


def test_votes_of_some_threads_of_a_block() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=256) as bx:
            tx = T.get_thread_binding()
            with T.ws(1):
                B[bx, tx % 64] = T.syncthreads_count(A[bx, tx % 64] > 0)

    check(main)


def test_tile_operators_run_once_among_threads() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=32) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((64,), "int32")
            T.copy(A[bx, :], s)
            for k in T.serial(2):
                s[tx * 2 + k] = s[tx * 2 + k] + tx
            T.copy(s, B[bx, :])

    text = check(main)
    assert text.count("@copy") == 2


def test_two_dimensional_blocks() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=(16, 4)) as bx:
            tx, ty = T.get_thread_binding(0), T.get_thread_binding(1)
            s = T.alloc_shared((4, 16), "int32")
            s[ty, tx] = A[bx, ty * 16 + tx]
            T.sync_threads()
            B[bx, tx * 4 + ty] = s[ty, tx]

    check(main)


def test_a_barrier_that_not_all_reach_is_refused() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            if tx < 32:
                T.sync_threads()
            A[bx, tx] = 0

    with pytest.raises(UnsupportedOnTarget, match="take different ways") as caught:
        serialise_threads(main.kernel)
    assert "TILE_INTERPRET=1" in str(caught.value)
    assert "T.sync_threads()" in str(caught.value)


def test_tile_programs_are_left_alone() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            T.clear(A[bx, :])

    assert serialise_threads(main.kernel) is main.kernel


def test_what_differs_between_threads() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            same = bx * 2
            own = tx + same
            common = T.alloc_var("int32", 0)
            mine = T.alloc_var("int32", 0)
            common = same
            mine = own
            A[bx, own % 64] = mine + common

    launch = next(n for n in walk(main.kernel) if isinstance(n, Launch))
    assert is_thread_program(launch)
    facts = Uniformity(launch)
    assert {"own", "tx"} <= {v.name for v in facts.variables}
    assert "same" not in {v.name for v in facts.variables}
    assert {b.name for b in facts.storages} == {"mine"}
    assert not [n for n in walk(main.kernel) if isinstance(n, For)]


def test_the_active_lanes_of_a_branch() -> None:
    @T.prim_func
    def main(A: T.Tensor((2, 64), "int32"), B: T.Tensor((2, 64), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            B[bx, tx] = 0
            if A[bx, tx] > 2:
                B[bx, tx] = T.cast(T.activemask(), "int32")
                if tx % 3 == 0:
                    B[bx, tx] = T.cast(T.activemask(), "int32")

    check(main)
