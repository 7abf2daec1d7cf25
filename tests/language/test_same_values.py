"""Stores of one value by many threads, written once or by several expansions of a macro."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import DataRace

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim")


@T.macro
def put(tensor, value):
    tensor[1] = value


@T.macro
def handed_over(cells, value, tensor, at):
    cells[0] = value
    T.sync_threads()
    tensor[at] += cells[0]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_all_threads(target, blocks):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((96,), "int32"), n: T.int32):
        with T.Kernel(blocks, threads=96) as b:
            t = T.get_thread_binding()
            cells = T.alloc_shared((4,), "int32")
            put(A, n + 3)
            put(cells, n)
            put(cells, n)
            if b == 0:
                handed_over(cells, n, B, t)
                handed_over(cells, n, B, t)
                handed_over(cells, n + 1, B, t)

    a, b = np.zeros(4, np.int32), np.zeros(96, np.int32)
    tile.compile(main, target=target)(a, b, 4)
    np.testing.assert_array_equal(a, [0, 7, 0, 0])
    np.testing.assert_array_equal(b, np.full(96, 13))


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_twice(target):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as b:
            cells = T.alloc_shared((4,), "int32")
            for _ in T.Parallel(40):
                put(cells, 5)
            for _ in T.Parallel(64):
                put(cells, 5)
            put(A, cells[1])
            for i in T.Parallel(32):
                B[b * 32 + i] = cells[1] + i

    a, b = np.zeros(4, np.int32), np.zeros(64, np.int32)
    tile.compile(main, target=target)(a, b)
    np.testing.assert_array_equal(a, [0, 5, 0, 0])
    np.testing.assert_array_equal(b, np.tile(np.arange(32) + 5, 2))


@T.prim_func
def twice_by_all(A: T.Tensor((4,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        put(A, 7)
        put(A, 7)
        B[t] = t


@T.prim_func
def by_some_and_by_others(A: T.Tensor((4,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        if t < 40:
            put(A, 7)
        if t >= 30:
            put(A, 7)
        B[t] = t


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", [twice_by_all, by_some_and_by_others], ids=["all", "some"])
def test_expansions_are_statements_of_their_own(target, kernel):
    """Values equal by chance: who checks says so, of both stores; who does not stores one."""
    a, b = np.zeros(4, np.int32), np.zeros(64, np.int32)
    run = tile.compile(kernel, target=target)
    if target == "cpu":
        run(a, b)
        np.testing.assert_array_equal(a, [0, 7, 0, 0])
    else:
        with pytest.raises(DataRace, match=r"writes A\[1\]"):
            run(a, b)
