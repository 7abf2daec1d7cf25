"""Kernels run by the reference interpreter: the statements mean what Python readers expect."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api.language as T
from tile_core.interp import interpret

POISON = -77


def run(kernel, *arrays, size=8):
    """Interpret a kernel with a poisoned int32 output of `size` elements as last argument."""
    out = np.full((size,), POISON, dtype="int32")
    interpret(kernel.kernel, [*arrays, out])
    return out.tolist()


@pytest.fixture
def numbers():
    return np.array([3, -1, 4, 1, -5, 9, 2, 6], dtype="int32")


def test_a_search_with_while_break_continue_and_variables(numbers):
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            i = T.alloc_var("int32", init=-1)
            total = T.alloc_var("int32", init=0)
            while i < 7:
                i += 1
                if A[i] < 0:
                    continue
                if A[i] == 9:
                    break
                total += A[i]
            out[0] = total
            out[1] = i

    assert run(f, numbers)[:3] == [3 + 4 + 1, 5, POISON]


def test_lets_swaps_and_loops(numbers):
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            for i in range(8):
                out[i] = A[i]
            for i in range(4):
                out[i], out[7 - i] = out[7 - i], out[i]
            a = T.alloc_var("int32", init=1)
            b = T.alloc_var("int32", init=2)
            a, b = b, a + b
            a, b = b, a + b
            before = a
            a = 100
            out[0] = before
            out[1] = b

    expected = numbers[::-1].tolist()
    assert run(f, numbers) == [3, 5, *expected[2:]]


def test_the_untaken_side_is_not_read(numbers):
    """A shared tile has no guard: reading outside it would be reported."""

    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            S = T.alloc_shared((8,), "int32")
            T.copy(A, S)
            for i in range(8):
                out[i] = S[i + 4] if i < 4 else 0
                if i + 2 < 8 and S[i + 2] > 3:
                    out[i] = -1

    shifted = [-5, 9, 2, 6, 0, 0, 0, 0]
    expected = [
        -1 if i + 2 < 8 and numbers[i + 2] > 3 else value for i, value in enumerate(shifted)
    ]
    assert run(f, numbers) == expected


def test_negative_indices_and_guards(numbers):
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            out[0] = A[-1]
            for i in range(3):
                out[i + 1] = A[-i - 1]
                out[i + 4] = A[i - 2]
            out[-1] = 5

    assert run(f, numbers) == [6, 6, 2, 9, 0, 0, 3, 5]


@pytest.mark.parametrize("explicit", [False, True])
def test_unrolling_changes_nothing(numbers, explicit):
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            S = T.alloc_shared((2,), "int32")
            for i in T.unroll(7, -1, -2, explicit=explicit):
                T.fill(S, 7)
                x = A[i] * 2
                if i > 2:
                    out[i] = x
                out[i - 1] = x + i + S[1]

    expected = [0] * 8
    for i in (7, 5, 3, 1):
        expected[i] = int(numbers[i]) * 2 if i > 2 else POISON
        expected[i - 1] = int(numbers[i]) * 2 + i + 7
    assert run(f, numbers) == expected


def test_macros_returns_and_references(numbers):
    @T.macro
    def add_to(total: T.Ref, value):
        total += value
        return total * 2

    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            total = T.alloc_var("int32", init=0)
            for i in range(8):
                doubled = add_to(total, A[i])
                out[i] = doubled
            add_to(out[0], 1000)

    expected = (2 * np.cumsum(numbers)).tolist()
    expected[0] += 1000
    assert run(f, numbers) == expected


def test_persistent_tiles_are_each_visited_once():
    @T.prim_func
    def f(out: T.Tensor((35,), "int32")):
        with T.Kernel(4, threads=1) as bx:
            for m, n in T.Persistent([5, 7], 4, bx, group_size=3):
                out[m * 7 + n] = m * 10 + n

    assert run(f, size=35) == [m * 10 + n for m in range(5) for n in range(7)]


@pytest.mark.parametrize("column_major", [True, False])
@pytest.mark.parametrize("together", [1, 2])  # 1: the tile after the last has no width
def test_scheduled_tiles_are_each_visited_once(column_major, together):
    @T.prim_func
    def f(out: T.Tensor((35,), "int32")):
        with T.Kernel(4, threads=1) as bx:
            tiles = T.PersistentTileScheduler(5, 7, None, together, column_major)
            tiles.init(bx)
            while tiles.valid():
                out[tiles.m_idx * 7 + tiles.n_idx] = tiles.linear_idx
                tiles.next_tile()

    assert sorted(run(f, size=35)) == list(range(35))


def test_regions_bound_to_names_keep_their_place(numbers):
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), out: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            start = T.alloc_var("int32", init=1)
            part = A[start : start + 3]
            start = 5
            T.copy(part, out[start : start + 3])

    assert run(f, numbers) == [POISON] * 5 + numbers[1:4].tolist()
