"""Loops over register tiles that products demand to be spread over threads differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import drawn, poisoned

N = 32

# Steps between products: from the sums of two, into a factor of the third.


@T.macro
def doubled(sums: Any, other: Any, factor: Any) -> None:
    for i, j in T.Parallel(N, N):
        factor[i, j] = T.cast(sums[i, j] * 2, factor.dtype)


@T.macro
def transposed(sums: Any, other: Any, factor: Any) -> None:
    for i, j in T.Parallel(N, N):
        factor[j, i] = T.cast(sums[i, j], factor.dtype)


@T.macro
def of_two(sums: Any, other: Any, factor: Any) -> None:
    for i, j in T.Parallel(N, N):
        factor[i, j] = T.cast(sums[i, j] + other[j, i], factor.dtype)


@T.macro
def masked(sums: Any, other: Any, factor: Any) -> None:
    T.fill(factor, 1)
    for i, j in T.Parallel(N, N):
        if j <= i:
            factor[i, j] = T.cast(sums[i, j], factor.dtype)


@T.macro
def updated(sums: Any, other: Any, factor: Any) -> None:
    for i, j in T.Parallel(N, N):
        factor[i, j] = T.cast(i % 3 - j % 2, factor.dtype)
    for i, j in T.Parallel(N, N):
        factor[i, j] = factor[i, j] + T.cast(sums[i, j], factor.dtype)


@T.macro
def in_steps(sums: Any, other: Any, factor: Any) -> None:
    first = T.alloc_fragment((N, N), sums.dtype)
    second = T.alloc_fragment((N, N), sums.dtype)
    for i, j in T.Parallel(N, N):
        first[i, j] = sums[i, j] + 1
    for i, j in T.Parallel(N, N):
        second[i, j] = first[i, j] + first[i, j]
    for i, j in T.Parallel(N, N):
        factor[i, j] = T.cast(second[i, j] - other[i, j], factor.dtype)


@T.macro
def then_copied(sums: Any, other: Any, factor: Any) -> None:
    between = T.alloc_fragment((N, N), sums.dtype)
    for i, j in T.Parallel(N, N):
        between[i, j] = sums[i, j] + 1
    T.copy(between, factor)


@T.macro
def less_their_rows(sums: Any, other: Any, factor: Any) -> None:
    rows = T.alloc_fragment((N,), sums.dtype)
    T.reduce_max(sums, rows, dim=1)
    for i, j in T.Parallel(N, N):
        factor[i, j] = T.cast(sums[i, j] - rows[i], factor.dtype)


@T.macro
def gathered(sums: Any, other: Any, factor: Any) -> None:
    for i, j in T.Parallel(N, N):
        factor[i, j] = T.cast(sums[(i * 5 + j) % N, j], factor.dtype)


@T.macro
def into_sums(sums: Any, other: Any, factor: Any) -> None:
    for i, j in T.Parallel(N, N):
        other[i, j] += sums[i, j]
    T.copy(other, factor)


STEPS = (doubled, transposed, of_two, masked, updated, in_steps, then_copied, less_their_rows,
         gathered, into_sums)  # fmt: skip


def chain(
    step: Any, dtype: str, *, threads: int = 64, transpose: bool = False, rounds: int = 1
) -> Any:
    """Return ``(A @ B, step) @ C``, summed over rounds, each with rows of its own of A."""
    sums = "int32" if dtype == "int8" else "float32"

    @T.prim_func
    def main(
        A: T.Tensor((rounds * N, N), dtype),
        B: T.Tensor((N, N), dtype),
        C: T.Tensor((N, N), dtype),
        D: T.Tensor((N, N), sums),
    ):
        with T.Kernel(1, threads=threads):
            a, b = T.alloc_shared((N, N), dtype), T.alloc_shared((N, N), dtype)
            c = T.alloc_shared((N, N), dtype)
            s, t = T.alloc_fragment((N, N), sums), T.alloc_fragment((N, N), sums)
            p, d = T.alloc_fragment((N, N), dtype), T.alloc_fragment((N, N), sums)
            T.copy(B, b)
            T.copy(C, c)
            T.clear(d)
            for k in T.Pipelined(rounds, num_stages=2):
                T.copy(A[k * N, 0], a)
                T.gemm(a, b, s, policy=T.GemmWarpPolicy.FullRow, clear_accum=True)
                T.gemm(b, a, t, policy=T.GemmWarpPolicy.FullCol, clear_accum=True)
                step(s, t, p)
                T.gemm(p, c, d, transpose_B=transpose)
            T.copy(d, D)

    return main


def check(main: Any, target: str, dtype: str, rounds: int = 1) -> None:
    shapes = ((rounds * N, N), (N, N), (N, N))
    factors = [drawn(*n, seed=k, low=-1, high=2, dtype=dtype) for k, n in enumerate(shapes)]
    sums = "int32" if dtype == "int8" else "float32"
    ours, theirs = poisoned(N, N, dtype=sums), poisoned(N, N, dtype=sums)
    tile.compile(main, target="interpret")(*factors, ours)
    tile.compile(main, target=target)(*factors, theirs)
    np.testing.assert_array_equal(theirs, ours)


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
def test_any_loop(target: str, step: Any) -> None:
    check(chain(step, "float16"), target, "float16")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "float8_e4m3fn"])
@pytest.mark.parametrize("target", ["cuda:sm_89@sim", "hip:gfx942@sim"])
def test_any_type(target: str, dtype: str) -> None:
    dtype = "float8_e4m3fnuz" if dtype.startswith("float8") and "hip" in target else dtype
    check(chain(doubled, dtype, transpose=True), target, dtype)


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("threads", [64, 128, 256])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("target", ["cuda:sm_90a@sim", "hip:gfx90a@sim"])
def test_any_number_of_warps(target: str, transpose: bool, threads: int) -> None:
    main = chain(doubled, "float16", threads=threads, transpose=transpose, rounds=3)
    check(main, target, "float16", 3)
