"""Flash attention, forward: O = softmax(Q K^T / sqrt(dim)) V, causal or not, and its log-sum-exp.

Q, K, V and O are (batch, tokens, heads, dim) float16, lse (batch, heads, tokens) float32. The
scores of one block of queries live in registers; they are never stored.
"""

import math

import numpy as np
import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64, 2, 32, True), (2, 100, 1, 64, False), (1, 150, 2, 64, True)]


@tilelang.jit(out_idx=[3, 4])
def flash_attention(
    batch, tokens, heads, dim, causal, block_M=64, block_N=64, threads=128, num_stages=2
):
    """Attend block by block with a running maximum and a running sum."""
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (batch, tokens, heads, dim)
    dtype, accum_dtype = "float16", "float32"

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        O: T.Tensor(shape, dtype),
        lse: T.Tensor((batch, heads, tokens), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(tokens, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), accum_dtype)
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            row_max_before = T.alloc_fragment((block_M,), accum_dtype)
            rescale = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(row_max, -T.infinity(accum_dtype))
            steps = (
                T.min(T.ceildiv(tokens, block_N), T.ceildiv((bx + 1) * block_M, block_N))
                if causal
                else T.ceildiv(tokens, block_N)
            )
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    query, key = bx * block_M + i, k * block_N + j
                    visible = key < tokens and (query >= key if causal else True)
                    scores[i, j] = T.if_then_else(visible, 0, -T.infinity(accum_dtype))
                T.gemm(
                    Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow
                )
                T.copy(row_max, row_max_before)
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2(row_max_before[i] * scale - row_max[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - row_max[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            for i in T.Parallel(block_M):
                rescale[i] = 1 / total[i]
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] *= rescale[i]
            T.copy(acc, O[bz, bx * block_M : (bx + 1) * block_M, by, :])
            for i in T.Parallel(block_M):
                total[i] = T.log2(total[i]) + row_max[i] * scale
            T.copy(total, lse[bz, by, bx * block_M : (bx + 1) * block_M])

    return main


def check(batch, tokens, heads, dim, causal, **tiles):
    """Compare one size with torch."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, tokens, heads, dim).half() for _ in range(3))
    o, lse = flash_attention(batch, tokens, heads, dim, causal, **tiles)(q, k, v)
    q, k, v = (x.float().transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(2, 3) / math.sqrt(dim)
    if causal:
        scores.masked_fill_(torch.ones(tokens, tokens).triu(1).bool(), -math.inf)
    expected = (scores.softmax(-1) @ v).transpose(1, 2)
    torch.testing.assert_close(o.float(), expected, rtol=1e-2, atol=2e-3)
    expected_lse = scores.logsumexp(-1) * math.log2(math.e)
    np.testing.assert_allclose(lse.numpy(), expected_lse.numpy(), rtol=1e-3, atol=1e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"flash attention, forward: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
