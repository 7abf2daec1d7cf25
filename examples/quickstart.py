"""A matrix product and flash attention on this CPU: checked, then measured.

Run it with ``nox -s quickstart``. Both kernels are written for tiles and threads as for a
GPU; nothing in them names the machine.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tile_api as tile
import tile_api.language as T
from tile_cpu.measured_peak import measure_fma_gflops


@tile.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, dtype="float32", accum_dtype="float32"):
    """C = A @ B."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tile.jit(out_idx=[-1])
def attention(heads, tokens, dim, block_M=128, block_N=128, causal=False):
    """softmax(Q K^T / sqrt(dim)) V for each head, without storing the scores."""
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (heads, tokens, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float32"),
        K: T.Tensor(shape, "float32"),
        V: T.Tensor(shape, "float32"),
        Output: T.Tensor(shape, "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block_M), heads, threads=128) as (bx, by):
            Q_shared = T.alloc_shared((block_M, dim), "float32")
            K_shared = T.alloc_shared((block_N, dim), "float32")
            V_shared = T.alloc_shared((block_N, dim), "float32")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            output = T.alloc_fragment((block_M, dim), "float32")
            highest = T.alloc_fragment((block_M,), "float32")
            highest_before = T.alloc_fragment((block_M,), "float32")
            correction = T.alloc_fragment((block_M,), "float32")
            row_sum = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")

            T.copy(Q[by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(output, 0)
            T.fill(total, 0)
            T.fill(highest, -T.infinity("float32"))
            steps = T.ceildiv((bx + 1) * block_M, block_N) if causal else T.ceildiv(tokens, block_N)
            for k in T.Pipelined(steps, num_stages=2):
                T.copy(K[by, k * block_N : (k + 1) * block_N, :], K_shared)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.if_then_else(
                            bx * block_M + i >= k * block_N + j, 0, -T.infinity("float32")
                        )
                else:
                    T.clear(scores)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                T.copy(highest, highest_before)
                T.reduce_max(scores, highest, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    correction[i] = T.exp2(highest_before[i] * scale - highest[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - highest[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * correction[i] + row_sum[i]
                for i, j in T.Parallel(block_M, dim):
                    output[i, j] *= correction[i]
                T.copy(V[by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(scores, V_shared, output)
            for i, j in T.Parallel(block_M, dim):
                output[i, j] /= total[i]
            T.copy(output, Output[by, bx * block_M : (bx + 1) * block_M, :])

    return main


def attention_in_numpy(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Return what `attention` computes, with whole arrays."""
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    if causal:
        ahead = np.triu(np.ones(scores.shape[-2:], bool), 1)
        scores = np.where(ahead, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def median_seconds(*runs: Callable[[], object], rounds: int = 7) -> list[float]:
    """Return the median time of each callable, measured in turns so that drift is shared.

    Before each of them the others' threads get the time to fall asleep: after its last product a
    library's workers go on asking for more for a tenth of a second, on cores that are not theirs.
    Its own threads sleep then, too; until the system has spread them over the cores again, which
    takes some milliseconds, calls do not count.
    """
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, found in zip(runs, times, strict=True):
            time.sleep(0.15)
            begin = time.perf_counter()
            while time.perf_counter() - begin < 0.03:
                run()
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]


def main() -> None:
    """Check both kernels against NumPy and print the table."""
    rng = np.random.default_rng(0)
    threads = len(os.sched_getaffinity(0))
    peak = measure_fma_gflops() * threads
    rows = []

    for size in (512, 1024, 2048):
        start = time.perf_counter()
        kernel = matmul(size, size, size, 128, 128, 32)
        compiled_ms = (time.perf_counter() - start) * 1e3
        a, b = (rng.standard_normal((size, size), np.float32) for _ in range(2))
        np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-3)
        ours, numpy = median_seconds(lambda: kernel(a, b), lambda: a @ b)  # noqa: B023
        rows.append((f"GEMM {size}", 2 * size**3, ours, numpy, compiled_ms))

    for causal in (False, True):
        heads, tokens, dim = 8, 1024, 64
        start = time.perf_counter()
        kernel = attention(heads, tokens, dim, causal=causal)
        compiled_ms = (time.perf_counter() - start) * 1e3
        q, k, v = (rng.standard_normal((heads, tokens, dim), np.float32) for _ in range(3))
        expected = attention_in_numpy(q, k, v, causal)
        np.testing.assert_allclose(kernel(q, k, v), expected, rtol=1e-4, atol=1e-5)
        ours, numpy = median_seconds(
            lambda: kernel(q, k, v),  # noqa: B023
            lambda: attention_in_numpy(q, k, v, causal),  # noqa: B023
            rounds=5,
        )
        flops = 4 * heads * tokens**2 * dim // (2 if causal else 1)
        name = f"attention {tokens}x{dim}{' causal' if causal else ''}"
        rows.append((name, flops, ours, numpy, compiled_ms))

    print(f"{threads} threads, measured peak {peak:.0f} GFLOP/s in float32; all results correct")
    print(f"{'kernel':<24} {'GFLOP/s':>8} {'of peak':>8} {'vs NumPy':>9} {'compiled in':>12}")
    for name, flops, ours, numpy, compiled_ms in rows:
        gflops = flops / ours / 1e9
        shares = f"{gflops:8.1f} {gflops / peak:8.0%} {numpy / ours:8.2f}x"
        print(f"{name:<24} {shares} {compiled_ms:9.0f} ms")


if __name__ == "__main__":
    main()
