"""Every operation on short floats rounds to their type, wherever its result goes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
from tile_api import language as T

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim")
TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def widened(dtype: str) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((8,), dtype), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[0, i] = A[i] * 2.0 + 1.0
                B[1, i] = A[i] / 3.0 - A[i]
                B[2, i] = T.if_then_else(A[i] + 1.0 > A[i], 1.0, 0.0)
                B[3, i] = -(A[i] * A[i])

    return kernel


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES)
def test_before_it_is_widened(dtype: str, target: str) -> None:
    short = TYPES[dtype]
    a = np.array([60000, 1.001, 3.3, 2048, 7, 1e-7, 250, -257]).astype(short)
    b = np.full((4, 8), np.nan, np.float32)
    tile.compile(widened(dtype), target=target)(a, b)
    one, two, three = (np.array(n, short) for n in (1, 2, 3))
    with np.errstate(over="ignore"):
        expected = [a * two + one, a / three - a, a + one > a, -(a * a)]
    np.testing.assert_array_equal(b, np.stack([e.astype(np.float32) for e in expected]))


def summed(dtype: str) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((6000,), dtype), B: T.Tensor((2,), dtype)):
        with T.Kernel(1, threads=1):
            one = T.alloc_var(dtype, init=0.0)
            cell = T.alloc_local((1,), dtype)
            cell[0] = 0.0
            for i in T.serial(6000):
                one += A[i]
                cell[0] = cell[0] + A[i]
            B[0] = one
            B[1] = cell[0]

    return kernel


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("dtype", "most"), [("float16", 2048), ("bfloat16", 256)])
def test_in_every_round_of_a_loop(dtype: str, most: int, target: str) -> None:
    b = np.full(2, np.nan, TYPES[dtype])
    tile.compile(summed(dtype), target=target)(np.ones(6000, TYPES[dtype]), b)
    assert b.astype(np.float32).tolist() == [most, most]


def scaled(dtype: str) -> Any:
    @T.prim_func
    def kernel(B: T.Tensor((4,), "float32"), x: getattr(T, dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = x

    return kernel


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES)
def test_in_scalar_arguments(dtype: str, target: str) -> None:
    b = np.full(4, np.nan, np.float32)
    kernel = tile.compile(scaled(dtype), target=target)
    for x in (65519.0, 1.0 / 3.0, 2049.0, -257.0):
        kernel(b, x)
        np.testing.assert_array_equal(b, np.float32(TYPES[dtype].type(x)))
