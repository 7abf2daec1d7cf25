"""Barriers of the whole grid in loops and branches: what blocks keep, and who reaches them."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import Deadlock, DeviceAssertError

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim")
m = T.dynamic("m")


def rotated(a, rounds):
    """Return what `rounds` exchanges with the next block make of rows: sums of both."""
    for k in range(rounds):
        a = a + np.roll(a, -1, 0)[:, ::-1] + k
    return a


@T.prim_func
def counted_by_a_shape(A: T.Tensor((m, 7), "int32"), B: T.Tensor((m, 7), "int32")):
    with T.Kernel(m, threads=32) as bx:
        tile_of_all = T.alloc_shared((7,), "int32")
        sums = T.alloc_fragment((7,), "int32")
        T.copy(A[bx, :], sums)
        for k in T.serial(T.ceildiv(m * 7, 7)):
            T.copy(sums, B[bx, :])
            T.sync_grid()
            T.copy(B[(bx + 1) % m, :], tile_of_all)
            for i in T.Parallel(7):
                sums[i] += tile_of_all[6 - i] + k
            T.sync_grid()
        T.copy(sums, A[bx, :])


@T.prim_func
def counted_by_a_scalar(A: T.Tensor((3, 7), "int32"), B: T.Tensor((3, 7), "int32"), n: T.int32):
    with T.Kernel(3, threads=7) as bx:
        tx = T.get_thread_binding()
        mine = T.alloc_var("int32", 0)
        own = T.alloc_local((1,), "int32")
        before = A[bx, tx]
        one_more = before + 1
        mine = before
        for k in T.serial(n):
            own[0] = k
            B[bx, tx] = mine
            T.sync_grid()
            mine += B[(bx + 1) % 3, 6 - tx] + own[0]
            T.sync_grid()
        A[bx, tx] = mine + one_more - before - 1


@T.prim_func
def counted_by_an_element(
    A: T.Tensor((3, 7), "int32"), B: T.Tensor((3, 7), "int32"), N: T.Tensor((1,), "int32")
):
    with T.Kernel(3, threads=32) as bx:
        cells = T.alloc_shared((7,), "int32")
        count = N[0]
        T.copy(A[bx, :], cells)
        for k in T.serial(2, 2 * count + 2, 2):
            T.copy(cells, B[bx, :])
            T.sync_grid()
            for i in T.Parallel(7):
                cells[i] += B[(bx + 1) % 3, 6 - i] + (k - 2) // 2
            T.sync_grid()
        T.copy(cells, A[bx, :])


@T.prim_func
def asked_before_each_round(
    A: T.Tensor((3, 7), "int32"), B: T.Tensor((3, 7), "int32"), N: T.Tensor((1,), "int32")
):
    with T.Kernel(3, threads=7) as bx:
        tx = T.get_thread_binding()
        k = T.alloc_var("int32", 0)
        while k < 2 * N[0]:
            if k == 2 * N[0] - 1:
                break
            k += 1
            if k % 2 == 0:
                continue
            B[bx, tx] = A[bx, tx]
            T.sync_grid()
            A[bx, tx] += B[(bx + 1) % 3, 6 - tx] + k // 2
            T.sync_grid()
            if N[0] > 4:
                A[bx, tx] += 1
                T.sync_grid()
                A[bx, tx] -= 1


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_rounds_that_a_shape_counts(target, rounds):
    a = np.random.default_rng(rounds).integers(-9, 10, (rounds, 7)).astype("int32")
    got = a.copy()
    tile.compile(counted_by_a_shape, target=target)(got, np.zeros_like(a))
    np.testing.assert_array_equal(got, rotated(a, rounds))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rounds", [-1, 0, 1, 3, 6])
def test_rounds_that_arguments_count(target, rounds):
    a = np.random.default_rng(9).integers(-9, 10, (3, 7)).astype("int32")
    want = rotated(a, rounds)
    by_scalar, by_element = a.copy(), a.copy()
    tile.compile(counted_by_a_scalar, target=target)(by_scalar, np.zeros_like(a), rounds)
    np.testing.assert_array_equal(by_scalar, want)
    number = np.array([rounds], "int32")
    tile.compile(counted_by_an_element, target=target)(by_element, np.zeros_like(a), number)
    np.testing.assert_array_equal(by_element, want)


@pytest.mark.parametrize("target", TARGETS)
def test_while_break_and_continue(target):
    run = tile.compile(asked_before_each_round, target=target)
    a = np.random.default_rng(9).integers(-9, 10, (3, 7)).astype("int32")
    results = []
    for rounds in (0, 1, 5):
        got = a.copy()
        run(got, np.zeros_like(a), np.array([rounds], "int32"))
        results.append(got)
    np.testing.assert_array_equal(results[0], a)
    np.testing.assert_array_equal(results[1], rotated(a, 1))
    np.testing.assert_array_equal(results[2], rotated(a, 5))


@pytest.mark.parametrize("target", TARGETS)
def test_branches_and_nests(target):
    @T.prim_func
    def main(A: T.Tensor((2, 32), "int32"), B: T.Tensor((2, 32), "int32"), n: T.int32):
        with T.Kernel(2, threads=32) as bx:
            tx = T.get_thread_binding()
            x = A[bx, tx]
            y = x + 1
            for j in T.serial(2 * n):
                for k in T.serial(j, 5, 2):
                    if (n + j) % 3 == 1:
                        B[bx, tx] = x + k
                        T.sync_grid()
                        A[bx, tx] += B[1 - bx, tx] + y
                        T.sync_grid()
                    else:
                        z = A[bx, tx]
                        if k > 1:
                            T.sync_grid()
                        A[bx, tx] = z + j
            A[bx, tx] += y

    a = np.random.default_rng(3).integers(-9, 10, (2, 32)).astype("int32")
    run = tile.compile(main, target=target)
    for n in (0, 1, 3):
        want = a.copy()
        for j in range(2 * n):
            for k in range(j, 5, 2):
                want += a[::-1] + k + a + 1 if (n + j) % 3 == 1 else j
        got = a.copy()
        run(got, np.zeros_like(a), n)
        np.testing.assert_array_equal(got, want + a + 1)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("others", [-1, 1])
def test_blocks_that_count_differently(target, others):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32"), n: T.int32, more: T.int32):
        with T.Kernel(2, threads=1) as bx:
            for _ in T.serial(n + more * bx):
                A[bx] += 1
                T.sync_grid()

    expect_nobody_comes(main, target, np.zeros(2, "int32"), 3, others)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("threads", [32, 64])
def test_threads_that_go_around(target, threads):
    """Those of one warp, too; a loop that others leave earlier."""

    @T.prim_func
    def branch(A: T.Tensor((2, threads), "int32"), n: T.int32):
        with T.Kernel(2, threads=threads) as bx:
            tx = T.get_thread_binding()
            if tx < n:
                T.sync_grid()
            A[bx, tx] = 1

    @T.prim_func
    def loop(A: T.Tensor((2, threads), "int32"), n: T.int32):
        with T.Kernel(2, threads=threads) as bx:
            tx = T.get_thread_binding()
            for _ in T.serial(n - tx // 20):
                T.sync_grid()
            A[bx, tx] = 1

    for main in (branch, loop):
        expect_nobody_comes(main, target, np.zeros((2, threads), "int32"), 7)


def expect_nobody_comes(main, target, *arguments):
    """Who waits would do so for ever; launches of the CPU, which do not wait, assert it."""
    what = DeviceAssertError if target == "cpu" else Deadlock
    told = "not all threads of all blocks reach" if target == "cpu" else "wait"
    with pytest.raises(what, match=told) as caught:
        tile.compile(main, target=target)(*arguments)
    assert caught.value.span is not None


@pytest.mark.parametrize("target", TARGETS)
def test_assertions_end_the_rounds(target):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32")):
        with T.Kernel(2, threads=1) as bx:
            k = T.alloc_var("int32", 0)
            while k < 9:
                T.sync_grid()
                T.device_assert(k < 3, "no more than three")
                A[bx] += 1
                k += 1

    with pytest.raises(DeviceAssertError, match="no more than three"):
        tile.compile(main, target=target)(np.zeros(2, "int32"))


@pytest.mark.parametrize("target", TARGETS)
def test_threads_of_one_block_meet_at_it_as_blocks_do(target):
    @T.prim_func
    def main(parts: T.Tensor((3,), "int32"), Y: T.Tensor((3, 40), "int32")):
        with T.Kernel(3, threads=40) as bx:
            tx = T.get_thread_binding()
            if tx == bx:
                parts[bx] = bx + 1
            T.sync_grid()
            Y[bx, tx] = parts[0] + parts[1] + parts[2]
            T.sync_grid()
            if tx == 39 - bx:
                parts[bx] = Y[bx, 0]

    parts, Y = np.zeros(3, "int32"), np.zeros((3, 40), "int32")
    tile.compile(main, target=target)(parts, Y)
    assert parts.tolist() == [6, 6, 6]
    assert (Y == 6).all()
