"""Expressions that Python functions build: parts used twice, and nested without end."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api.language as T
from tile_core.errors import FrontendValueError

N = 61


def mixed(value, times):
    """What a function returns has two parents in each step: 2**times terms, written out."""
    for step in range(times):
        value = (value ^ (value >> 1)) + step
    return value


def summed(value, terms):
    for step in range(terms):
        value = value + (step % 3)
    return value


def kernel_of(function, dtype="int32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(N):
                B[i] = function(A[i])

    return main


def check(run, function):
    a = np.arange(-7, N - 7, dtype=np.int32)
    b = np.full_like(a, 99)
    run(kernel_of(function), a, b)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(b, function(a))


def test_what_is_used_twice_is_computed_once(run):
    check(run, lambda x: mixed(x, 40))


@pytest.mark.in_turn(2)
def test_a_sum_of_thousands_of_terms(run):
    check(run, lambda x: summed(x, 3000))


def test_an_index_of_many_terms(run):
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(N):
                B[i] = A[(mixed(i, 30) & 0x7FFF) % N]

    a = np.arange(N, dtype=np.int32) * 3
    b = np.zeros_like(a)
    run(main, a, b)
    np.testing.assert_array_equal(b, a[(mixed(np.arange(N, dtype=np.int32), 30) & 0x7FFF) % N])


def test_a_condition_and_offsets_of_tiles(run):
    @T.prim_func
    def main(A: T.Tensor((4, 16), "int32"), B: T.Tensor((4, 16), "int32")):
        with T.Kernel(4, threads=32) as bx:
            tile = T.alloc_shared((16,), "int32")
            if (mixed(bx, 20) & 1) == 0:
                T.copy(A[mixed(bx, 20) & 3, 0], tile)
                T.copy(tile, B[bx, 0])

    a = np.arange(64, dtype=np.int32).reshape(4, 16)
    b = np.full_like(a, -1)
    run(main, a, b)
    mix = mixed(np.arange(4, dtype=np.int32), 20)
    expected = np.where((mix & 1 == 0)[:, None], a[mix & 3], -1)
    np.testing.assert_array_equal(b, expected)


def conditional(taken, other):
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(N):
                B[i] = T.if_then_else(i + 9 < N, taken(A, i), other(A, i))

    return main


def test_sides_of_conditionals_that_only_compute(run):
    a = np.arange(N, dtype=np.int32)
    b = np.zeros_like(a)
    run(conditional(lambda A, i: mixed(i, 20), lambda A, i: mixed(i + 1, 30)), a, b)
    np.testing.assert_array_equal(b, np.where(a + 9 < N, mixed(a, 20), mixed(a + 1, 30)))


def test_sides_of_conditionals_that_load_are_evaluated_only_when_taken():
    with pytest.raises(FrontendValueError) as raised:
        conditional(lambda A, i: mixed(A[i + 9], 30), lambda A, i: 0)
    assert str(raised.value).startswith("[TL1002] this expression has ")
    assert "alloc_var" in str(raised.value)


def test_kernels_of_usual_size_are_not_cut():
    text = str(kernel_of(lambda x: mixed(x, 5)).script())
    assert "part" not in text
