"""Softmax of rows: in one pass with a running maximum, or with the row in registers.

X and Y (M, N) float16, computed in float32.
"""

import math

import numpy as np
import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 64), (33, 300), (1, 1000)]


@tilelang.jit(out_idx=[-1])
def softmax_online(M, N, block_M=8, block_N=128):
    """Read every row twice: once for its log-sum-exp, once for the result."""
    scale = math.log2(math.e)

    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, block_N), "float32")
            exps = T.alloc_fragment((block_M, block_N), "float32")
            highest = T.alloc_fragment((block_M,), "float32")
            sums = T.alloc_fragment((block_M,), "float32")
            lse = T.alloc_fragment((block_M,), "float32")
            T.annotate_safe_value({X: -T.infinity("float16")})
            T.fill(lse, -T.infinity("float32"))
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, k * block_N], x)
                T.reduce_max(x, highest, dim=1)
                for i in T.Parallel(block_M):
                    highest[i] = T.max(highest[i], -60000.0)
                for i, j in T.Parallel(block_M, block_N):
                    exps[i, j] = T.exp2((x[i, j] - highest[i]) * scale)
                T.reduce_sum(exps, sums, dim=1)
                for i in T.Parallel(block_M):
                    top = highest[i] * scale
                    lse[i] = top + T.log2(T.exp2(lse[i] - top) + sums[i])
            for k in T.Pipelined(T.ceildiv(N, block_N), num_stages=2):
                T.copy(X[bx * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    x[i, j] = T.exp2(x[i, j] * scale - lse[i])
                T.copy(x, Y[bx * block_M, k * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def softmax_row(M, N):
    """Read every row once, one block per row."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(M, threads=256) as bx:
            row = T.alloc_fragment((N,), "float32")
            highest = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[bx, :], row)
            T.reduce_max(row, highest, dim=0)
            for j in T.Parallel(N):
                row[j] = T.exp(row[j] - highest[0])
            T.reduce_sum(row, total, dim=0)
            for j in T.Parallel(N):
                Y[bx, j] = row[j] / total[0]

    return main


def check(M, N):
    """Compare both kernels with torch."""
    x = np.random.default_rng(0).normal(0, 3, (M, N)).astype("float16")
    expected = torch.softmax(torch.from_numpy(x).float(), -1).numpy()
    for softmax in (softmax_online, softmax_row):
        np.testing.assert_allclose(softmax(M, N)(x), expected, rtol=5e-3, atol=1e-6)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"softmax, online and by rows: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
