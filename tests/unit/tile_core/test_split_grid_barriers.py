"""Barriers of the whole grid become borders between launches."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.interp import interpret
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import For, Launch
from tile_core.ir.verify import verify
from tile_core.ops.control import Barrier
from tile_core.passes.split_grid_barriers import split_grid_barriers


def test_each_part_is_a_launch() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32"), k: T.int32):
        with T.Kernel(4, threads=8) as bx:
            tx = T.get_thread_binding()
            twice = bx * 2 + k
            A[bx, tx] = twice + tx
            T.sync_grid()
            v = T.alloc_local((1,), "int32")
            v[0] = A[3 - bx, tx]
            B[bx, tx] = v[0] + twice
            T.sync_grid()
            A[bx, tx] = B[(bx + 1) % 4, tx]

    kernel = split_grid_barriers(main.kernel)
    verify(kernel)
    launches = [n for n in walk(kernel) if isinstance(n, Launch)]
    assert len(launches) == 3
    assert not [n for n in walk(kernel) if isinstance(n, Barrier)]
    results = [np.full((2, 4, 8), -1, np.int32) for _ in range(2)]
    interpret(main.kernel, [*results[0], 5])
    interpret(kernel, [*results[1], 5])
    np.testing.assert_array_equal(results[1], results[0])


def test_kernels_without_them_are_left_alone() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            A[tx] = tx
            T.sync_threads()

    assert split_grid_barriers(main.kernel) is main.kernel


def test_rounds_are_the_hosts() -> None:
    """A count of arguments is the host's; one that blocks load is asked for in each round."""

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), n: T.int32):
        with T.Kernel(4, threads=1) as bx:
            half = n // 2
            for k in T.serial(half):
                A[bx] += k
                T.sync_grid()
            if A[0] > 3:
                T.sync_grid()

    kernel = split_grid_barriers(main.kernel)
    verify(kernel)
    loop = next(n for n in walk(kernel) if isinstance(n, For))
    assert print_kernel(kernel).count("goes_on_kept: global") == 1
    assert {n for n in walk(loop.stop) if isinstance(n, Var)} == {main.kernel.params[1]}
    for k in (0, 1, 5):
        results = [np.full(4, 1, np.int32) for _ in range(2)]
        interpret(main.kernel, [results[0], k])
        interpret(kernel, [results[1], k])
        np.testing.assert_array_equal(results[1], results[0])


TARGETS = ("interpret", "cpu", "cuda:sm_80@sim")


@pytest.mark.parametrize("target", TARGETS)
def test_what_blocks_and_threads_remember(target: str) -> None:
    """Shared tiles, fragments, arrays and variables of threads, values, rounds of a loop."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 32), "int32"), B: T.Tensor((4, 32), "int32"), C: T.Tensor((4, 32), "int32")
    ):
        with T.Kernel(2, 2, threads=32) as (bx, by):
            tx = T.get_thread_binding()
            cells = T.alloc_shared((32,), "int32")
            row = T.alloc_shared((32,), "int32")
            own = T.alloc_local((2,), "int32")
            f = T.alloc_fragment((32,), "int32")
            n = T.alloc_var("int32", 0)
            me = by * 2 + bx
            x = A[me, tx]
            if tx < 30:
                cells[tx] = x
            own[1] = x * 2
            T.copy(A[me, :], f)
            T.copy(A[me, :], row)
            B[me, tx] = x + 1
            T.sync_grid()
            for k in T.serial(2):
                n += B[3 - me, tx]
                T.sync_grid()
                B[me, tx] = n + k
                for i in T.Parallel(32):
                    f[i] = f[i] + row[31 - i]
                T.sync_grid()
            T.copy(f, C[me, :])
            T.sync_threads()
            C[me, tx] = C[me, tx] + own[1] + x + n
            if tx >= 2:
                C[me, tx] += cells[31 - tx]

    verify(split_grid_barriers(main.kernel))
    a = np.random.default_rng(1).integers(-9, 10, (4, 32)).astype("int32")
    b, c = np.zeros_like(a), np.zeros_like(a)
    tile.compile(main, target=target)(a, b, c)
    first = (a + 1)[::-1]
    second = first[::-1]  # what the others had counted after the first round
    n = first + second
    want = a + 2 * a[:, ::-1] + 2 * a + a + n
    want[:, 2:] += a[:, 29::-1]
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("target", TARGETS)
def test_workspaces_belong_to_all_parts(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32"), n: T.int32):
        with T.Kernel(n, threads=32) as bx:
            w = T.alloc_global((n, 32), "int32")
            s = T.alloc_shared((32,), "int32")
            for i in T.Parallel(32):
                w[bx, i] = A[bx, i] + 1
                s[i] = 100
            T.sync_grid()
            for i in T.Parallel(32):
                A[bx, i] = w[n - 1 - bx, i] + s[i]

    a = np.arange(128, dtype="int32").reshape(4, 32)
    got = a.copy()
    tile.compile(main, target=target)(got, 3)
    np.testing.assert_array_equal(got[:3], a[2::-1] + 101)
    np.testing.assert_array_equal(got[3], a[3])


def test_what_is_written_again_is_not_kept() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32")):
        with T.Kernel(4, threads=32) as bx:
            f = T.alloc_fragment((32,), "int32")
            T.copy(A[bx, :], f)
            T.copy(f, A[bx, :])
            T.sync_grid()
            for k in T.serial(2):
                if bx > k:
                    T.clear(f)
                    T.copy(f, A[bx, :])

    kernel = split_grid_barriers(main.kernel)
    verify(kernel)
    assert "kept" not in print_kernel(kernel)
