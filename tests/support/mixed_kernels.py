"""Kernels of which the engine copies some tiles and warps of the producers others."""

from __future__ import annotations

from typing import Any

import numpy as np

import tile_api.language as T
from support.ring_kernels import Case


def odd_rows(
    rounds: int,
    columns: int = 124,
    *,
    stages: int = 3,
    threads: int = 128,
    both: bool = False,
    at_run_time: bool = False,
) -> Case:
    """Return A @ B where rows of B, or of both, begin anywhere but at multiples of 16 bytes.

    Parameters
    ----------
    rounds
        Steps of 64 along K; the last one is shorter by 8, or by 4 if rows of A are odd too.
    columns
        Of B: an odd multiple of 4 lets pieces have 8 bytes, of 2 only 4.
    at_run_time
        The launch tells the kernel how many these are; it knows that 4 divide them.
    """
    width: Any = T.dynamic("width") if at_run_time else columns
    rows, depth = threads // 2, 64 * max(rounds, 1) - (4 if both else 8)

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, depth), "float16"),
        B: T.Tensor((depth, width), "float16"),
        steps: T.Tensor((1,), "int32"),
        C: T.Tensor((rows, 128), "float32"),
    ):
        if at_run_time:
            T.assume(width % 4 == 0)
        with T.Kernel(2, threads=threads) as bx:
            A_s = T.alloc_shared((rows, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((rows, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(steps[0], num_stages=stages):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[k * 64, bx * 64], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[0, bx * 64])

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            rng.integers(-2, 3, (rows, depth)).astype("float16"),
            rng.integers(-2, 3, (depth, columns)).astype("float16"),
            np.array([rounds], "int32"),
            np.full((rows, 128), np.nan, "float32"),
        ]

    def expected(a: np.ndarray, b: np.ndarray, steps: np.ndarray) -> np.ndarray:
        wide = np.zeros((len(b), 128), "float32")
        wide[:, :columns] = b
        wide[64 * rounds :] = 0
        return a.astype("float32") @ wide

    return Case(kernel, arguments, expected)


def gathered(lengths: list[int], *, page: int = 16, stages: int = 2, heads: int = 64) -> Case:
    """Return sums over keys, found page by page through a table: ``(Q @ K.T) @ V``.

    A tile has 64 keys, of several pages. Q is copied once, by the engine.
    """
    batch, most = len(lengths), max(*lengths, 1)
    pages = -(-most // page)

    @T.prim_func
    def kernel(
        Q: T.Tensor((batch, heads, 64), "float16"),
        K: T.Tensor((batch * pages + 3, page, 64), "float16"),
        V: T.Tensor((batch * pages + 3, page, 64), "float16"),
        table: T.Tensor((batch, pages), "int32"),
        keys: T.Tensor((batch,), "int32"),
        O: T.Tensor((batch, heads, 64), "float32"),
    ):
        with T.Kernel(batch, threads=2 * heads) as b:
            Q_s = T.alloc_shared((heads, 64), "float16")
            K_s = T.alloc_shared((64, 64), "float16")
            V_s = T.alloc_shared((64, 64), "float16")
            scores = T.alloc_fragment((heads, 64), "float32")
            weights = T.alloc_fragment((heads, 64), "float16")
            sums = T.alloc_fragment((heads, 64), "float32")
            T.copy(Q[b, 0:heads, 0:64], Q_s)
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(keys[b], 64), num_stages=stages):
                for i, j in T.Parallel(64, 64):
                    K_s[i, j] = T.if_then_else(
                        k * 64 + i < keys[b],
                        K[table[b, (k * 64 + i) // page], (k * 64 + i) % page, j],
                        T.float16(0),
                    )
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(64, 64):
                    V_s[i, j] = T.if_then_else(
                        k * 64 + i < keys[b],
                        V[table[b, (k * 64 + i) // page], (k * 64 + i) % page, j],
                        T.float16(0),
                    )
                T.copy(scores, weights)
                T.gemm(weights, V_s, sums)
            T.copy(sums, O[b, 0:heads, 0:64])

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        pool = batch * pages + 3
        return [
            rng.integers(-1, 2, (batch, heads, 64)).astype("float16"),
            *(rng.integers(-1, 2, (pool, page, 64)).astype("float16") for _ in range(2)),
            rng.permutation(pool)[: batch * pages].reshape(batch, pages).astype("int32"),
            np.array(lengths, "int32"),
            np.full((batch, heads, 64), np.nan, "float32"),
        ]

    def expected(
        q: np.ndarray, k: np.ndarray, v: np.ndarray, table: np.ndarray, keys: np.ndarray
    ) -> np.ndarray:
        found = np.zeros((batch, heads, 64), "float32")
        for b, n in enumerate(keys):
            mine, values = (x[table[b]].reshape(-1, 64)[:n].astype("float32") for x in (k, v))
            found[b] = (q[b].astype("float32") @ mine.T) @ values
        return found

    return Case(kernel, arguments, expected)


def three_ways(
    rounds: int, *, stages: int = 3, threads: int = 128, masked: list[int] | None = None
) -> Case:
    """Return a product of steps that are scaled by rows and by columns.

    The engine copies the factors, warps begin copies of the scales of rows, and convert and copy
    those of columns themselves.

    Parameters
    ----------
    masked
        Rounds that are left out, as zeros; all are done if there is none.
    """
    rows, depth = threads // 2, 64 * max(rounds, 1)
    mask = masked or [1] * max(rounds, 1)

    @T.prim_func
    def kernel(
        A: T.Tensor((rows, depth), "float16"),
        B: T.Tensor((64, depth), "float16"),
        R: T.Tensor((max(rounds, 1), rows), "float32"),
        S: T.Tensor((64, max(rounds, 1)), "float16"),
        wanted: T.Tensor((len(mask),), "int32"),
        steps: T.Tensor((1,), "int32"),
        C: T.Tensor((rows, 64), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((rows, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            R_s = T.alloc_shared((rows,), "float32")
            S_s = T.alloc_shared((64,), "float32")
            step = T.alloc_fragment((rows, 64), "float32")
            total = T.alloc_fragment((rows, 64), "float32")
            T.clear(total)
            for k in T.Pipelined(steps[0], num_stages=stages):
                if wanted[k] != 0:
                    T.copy(A[0, k * 64], A_s)
                    T.copy(B[0, k * 64], B_s)
                    for i in T.Parallel(rows):
                        R_s[i] = R[k, i]
                    for j in T.Parallel(64):
                        S_s[j] = T.cast(S[j, k], "float32") * 2
                    T.gemm(A_s, B_s, step, transpose_B=True, clear_accum=True)
                    for i, j in T.Parallel(rows, 64):
                        total[i, j] += step[i, j] * R_s[i] * S_s[j]
            T.copy(total, C)

    def arguments(rng: np.random.Generator) -> list[np.ndarray]:
        return [
            rng.integers(-2, 3, (rows, depth)).astype("float16"),
            rng.integers(-2, 3, (64, depth)).astype("float16"),
            rng.integers(1, 4, (max(rounds, 1), rows)).astype("float32"),
            rng.integers(1, 4, (64, max(rounds, 1))).astype("float16"),
            np.array(mask, "int32"),
            np.array([rounds], "int32"),
            np.full((rows, 64), np.nan, "float32"),
        ]

    def expected(*given: Any) -> np.ndarray:
        a, b, r, s, wanted, _ = given
        c = np.zeros((rows, 64), "float32")
        for k in range(rounds):
            if wanted[k]:
                part = slice(64 * k, 64 * k + 64)
                step = a[:, part].astype("float32") @ b[:, part].T.astype("float32")
                c += step * r[k][:, None] * (2 * s[:, k].astype("float32"))
        return c

    return Case(kernel, arguments, expected)
