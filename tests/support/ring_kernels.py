"""Kernels whose pipelined loops get producers, with exact inputs and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tile_api.language as T

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Case:
    """A kernel and how to check it.

    Parameters
    ----------
    arguments
        Makes inputs, small integers, from a generator; the output comes last, poisoned.
    """

    function: Any
    arguments: Callable[[np.random.Generator], list[np.ndarray]]
    expected: Callable[..., np.ndarray]  # what the output is, from the inputs


def dequantised(
    rounds: int,
    *,
    stages: int = 2,
    threads: int = 128,
    rows: int = 64,
    columns: int = 64,
    at_run_time: bool = False,
    scope: str = "fragment",
) -> Case:
    """Return 4-bit weights times activations: threads make the weights float16.

    Parameters
    ----------
    rounds
        Steps of 64 along K.
    scope
        Where these are: in registers ("fragment"), or in a tile in "shared" memory.
    at_run_time
        The kernel reads their number in a tensor.
    """
    depth = 64 * max(rounds, 1)

    @T.prim_func
    def kernel(
        A: T.Tensor((columns, depth), "float16"),
        W: T.Tensor((rows, depth // 2), "uint8"),
        steps: T.Tensor((1,), "int32"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((columns, 64), "float16")
            W_s = T.alloc_shared((rows, 32), "uint8")
            packed = T.alloc_fragment((rows, 32), "uint8")
            if scope == "fragment":
                W_f = T.alloc_fragment((rows, 64), "float16")
            else:
                W_f = T.alloc_shared((rows, 64), "float16")
            sums = T.alloc_fragment((rows, columns), "float32")
            T.clear(sums)
            for k in T.Pipelined(steps[0] if at_run_time else rounds, num_stages=stages):
                T.copy(A[0, k * 64], A_s)
                T.copy(W[0, k * 32], W_s)
                T.copy(W_s, packed)
                for i, j in T.Parallel(rows, 64):
                    W_f[i, j] = T.cast(
                        (packed[i, j // 2] >> T.cast(j % 2 * 4, "uint8")) & T.uint8(15), "float16"
                    )
                T.gemm(W_f, A_s, sums, transpose_B=True)
            T.copy(sums, C)

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            rng.integers(-2, 3, (columns, depth)).astype("float16"),
            rng.integers(0, 256, (rows, depth // 2)).astype("uint8"),
            np.array([rounds], "int32"),
            np.full((rows, columns), np.nan, "float32"),
        ]

    def expected(a: np.ndarray, w: np.ndarray, steps: np.ndarray) -> np.ndarray:
        wide = np.stack([w & 15, w >> 4], -1).reshape(rows, -1)[:, : 64 * rounds]
        return wide.astype("float32") @ a[:, : 64 * rounds].T.astype("float32")

    return Case(kernel, arguments, expected)


def scaled(
    rounds: int,
    *,
    stages: int = 3,
    threads: int = 128,
    columns: int = 64,
    begun: str = "set",
    at_run_time: bool = False,
) -> Case:
    """Return a product of which each step is scaled by row before it is added up.

    Parameters
    ----------
    begun
        How sums of a step begin: the product sets them ("set"), or they are cleared before it
        ("before"), or behind their use and in front of the loop ("behind").
    at_run_time
        The kernel reads the number of rounds in a tensor.
    """
    depth = 64 * max(rounds, 1)

    @T.prim_func
    def kernel(
        A: T.Tensor((64, depth), "float16"),
        B: T.Tensor((columns, depth), "float16"),
        S: T.Tensor((64, max(rounds, 1)), "float32"),
        steps: T.Tensor((1,), "int32"),
        C: T.Tensor((64, columns), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((columns, 64), "float16")
            S_s = T.alloc_shared((64,), "float32")
            step = T.alloc_fragment((64, columns), "float32")
            total = T.alloc_fragment((64, columns), "float32")
            T.clear(total)
            if begun == "behind":
                T.clear(step)
            for k in T.Pipelined(steps[0] if at_run_time else rounds, num_stages=stages):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[0, k * 64], B_s)
                for i in T.Parallel(64):
                    S_s[i] = S[i, k] * 2
                if begun == "before":
                    T.clear(step)
                T.gemm(A_s, B_s, step, transpose_B=True, clear_accum=begun == "set")
                for i, j in T.Parallel(64, columns):
                    total[i, j] += step[i, j] * S_s[i]
                if begun == "behind":
                    T.clear(step)
            T.copy(total, C)

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            rng.integers(-2, 3, (64, depth)).astype("float16"),
            rng.integers(-2, 3, (columns, depth)).astype("float16"),
            rng.integers(1, 4, (64, max(rounds, 1))).astype("float32"),
            np.array([rounds], "int32"),
            np.full((64, columns), np.nan, "float32"),
        ]

    def expected(a: np.ndarray, b: np.ndarray, s: np.ndarray, steps: np.ndarray) -> np.ndarray:
        left = (a.reshape(64, -1, 64) * (2 * s)[:, :, None])[:, :rounds].reshape(64, -1)
        return left @ b[:, : 64 * rounds].T.astype("float32")

    return Case(kernel, arguments, expected)


def irregular(lengths: list[int], *, stages: int = 2, form: str = "for") -> Case:
    """Return products of one block for several tiles of rows, each with rounds of its own.

    Parameters
    ----------
    lengths
        Rounds of each tile; one with a negative number is skipped.
    form
        Whether a "for" or a "while" loop goes round the tiles.
    """
    count, depth = len(lengths), 64 * max(*lengths, 1)

    @T.prim_func
    def kernel(
        A: T.Tensor((64 * count, depth), "float16"),
        B: T.Tensor((64, depth), "float16"),
        S: T.Tensor((64, depth // 64), "float32"),
        steps: T.Tensor((count,), "int32"),
        C: T.Tensor((64 * count, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            S_s = T.alloc_shared((64,), "float32")
            step = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_fragment((64, 64), "float32")
            tile = T.alloc_var("int32")

            @T.macro
            def one(t):
                if steps[t] >= 0:
                    T.clear(total)
                    for k in T.Pipelined(steps[t], num_stages=stages):
                        T.copy(A[t * 64, k * 64], A_s)
                        T.copy(B[0, k * 64], B_s)
                        for i in T.Parallel(64):
                            S_s[i] = S[i, k] * 2
                        T.gemm(A_s, B_s, step, transpose_B=True, clear_accum=True)
                        for i, j in T.Parallel(64, 64):
                            total[i, j] += step[i, j] * S_s[i]
                    T.copy(total, C[t * 64, 0])

            if form == "for":
                for t in T.serial(count):
                    one(t)
            else:
                tile = 0
                while tile < count:
                    one(tile)
                    tile += 1

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            rng.integers(-2, 3, (64 * count, depth)).astype("float16"),
            rng.integers(-2, 3, (64, depth)).astype("float16"),
            rng.integers(1, 4, (64, depth // 64)).astype("float32"),
            np.array(lengths, "int32"),
            np.full((64 * count, 64), np.nan, "float32"),
        ]

    return Case(kernel, arguments, _irregular_sums)


def _irregular_sums(a: np.ndarray, b: np.ndarray, s: np.ndarray, steps: np.ndarray) -> np.ndarray:
    c = np.full((len(a), 64), np.nan, "float32")
    for t, n in enumerate(steps):
        if n >= 0:
            rows = a[64 * t : 64 * t + 64].reshape(64, -1, 64) * (2 * s)[:, :, None]
            left = rows[:, :n].reshape(64, -1)
            c[64 * t : 64 * t + 64] = left @ b[:, : 64 * n].T.astype("float32")
    return c


def two_loops(first: int, second: int, *, stages: tuple[int, int] = (2, 3)) -> Case:
    """Return ``A @ B.T + D @ E.T`` of tiles that one loop, and then another goes through."""
    depths = (64 * max(first, 1), 64 * max(second, 1))

    @T.prim_func
    def kernel(
        A: T.Tensor((64, depths[0]), "float16"),
        B: T.Tensor((64, depths[0]), "float16"),
        D: T.Tensor((64, depths[1]), "uint8"),
        E: T.Tensor((64, depths[1]), "float16"),
        steps: T.Tensor((2,), "int32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            D_s = T.alloc_shared((64, 64), "uint8")
            E_s = T.alloc_shared((64, 64), "float16")
            D_f = T.alloc_fragment((64, 64), "float16")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            for k in T.Pipelined(steps[0], num_stages=stages[0]):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[0, k * 64], B_s)
                T.gemm(A_s, B_s, total, transpose_B=True)
            for k in T.Pipelined(steps[1], num_stages=stages[1]):
                T.copy(D[0, k * 64], D_s)
                T.copy(E[0, k * 64], E_s)
                T.copy(D_s, D_f)
                T.gemm(D_f, E_s, total, transpose_B=True)
            T.copy(total, C)

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            *(rng.integers(-2, 3, (64, depths[0])).astype("float16") for _ in range(2)),
            rng.integers(0, 4, (64, depths[1])).astype("uint8"),
            rng.integers(-2, 3, (64, depths[1])).astype("float16"),
            np.array([first, second], "int32"),
            np.full((64, 64), np.nan, "float32"),
        ]

    def expected(
        a: np.ndarray, b: np.ndarray, d: np.ndarray, e: np.ndarray, steps: np.ndarray
    ) -> np.ndarray:
        left, right = a[:, : 64 * first], b[:, : 64 * first].T
        low, high = d[:, : 64 * second], e[:, : 64 * second].T
        return left.astype("float32") @ right + low.astype("float32") @ high.astype("float32")

    return Case(kernel, arguments, expected)


def guarded(wanted: list[int], *, stages: int = 3) -> Case:
    """Return a product that leaves the steps out of which `wanted` says so."""
    rounds, depth = len(wanted), 64 * len(wanted)

    @T.prim_func
    def kernel(
        A: T.Tensor((64, depth), "float16"),
        B: T.Tensor((64, depth), "float16"),
        S: T.Tensor((64, rounds + 1), "float32"),
        mask: T.Tensor((rounds,), "int32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            S_s = T.alloc_shared((64, 1), "float32")
            step = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            for k in T.Pipelined(rounds, num_stages=stages):
                T.copy(B[0, k * 64], B_s)
                if mask[k] != 0:
                    T.copy(A[0, k * 64], A_s)
                    T.copy(S[0:64, k : k + 1], S_s)
                    T.gemm(A_s, B_s, step, transpose_B=True, clear_accum=True)
                    for i, j in T.Parallel(64, 64):
                        total[i, j] += step[i, j] * S_s[i, 0]
            T.copy(total, C)

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            *(rng.integers(-2, 3, (64, depth)).astype("float16") for _ in range(2)),
            rng.integers(1, 4, (64, rounds + 1)).astype("float32"),
            np.array(wanted, "int32"),
            np.full((64, 64), np.nan, "float32"),
        ]

    def expected(a: np.ndarray, b: np.ndarray, s: np.ndarray, mask: np.ndarray) -> np.ndarray:
        factors = (s[:, :rounds] * mask)[:, :, None]
        left = (a.reshape(64, rounds, 64) * factors).reshape(64, depth)
        return left @ b.T.astype("float32")

    return Case(kernel, arguments, expected)
