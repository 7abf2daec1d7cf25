"""Grouped-query attention with run-time lengths: several query heads share one head of K and V.

Q and O (batch, tokens, heads, dim), K and V (batch, tokens_kv, heads / group, dim), bfloat16.
Queries are the last tokens of the sequence: query i sees keys up to i + tokens_kv - tokens.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(4, 2, 32, 1, 64, 64), (4, 4, 64, 2, 40, 130), (2, 1, 64, 1, 1, 33)]


@tilelang.jit(out_idx=[3])
def grouped_query_attention(heads, group, dim, block_M=64, block_N=32):
    """Attend; batch and both lengths are bound when the kernel is called."""
    batch, tokens, tokens_kv = T.dynamic("batch, tokens, tokens_kv")
    scale = math.log2(math.e) / math.sqrt(dim)
    dtype, accum_dtype = "bfloat16", "float32"

    @T.prim_func
    def main(
        Q: T.Tensor((batch, tokens, heads, dim), dtype),
        K: T.Tensor((batch, tokens_kv, heads // group, dim), dtype),
        V: T.Tensor((batch, tokens_kv, heads // group, dim), dtype),
        O: T.Tensor((batch, tokens, heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(tokens, block_M), heads, batch, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            O_shared = T.alloc_shared((block_M, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), accum_dtype)
            weights = T.alloc_fragment((block_M, block_N), dtype)
            acc = T.alloc_fragment((block_M, dim), accum_dtype)
            row_max = T.alloc_fragment((block_M,), accum_dtype)
            row_max_before = T.alloc_fragment((block_M,), accum_dtype)
            rescale = T.alloc_fragment((block_M,), accum_dtype)
            row_sum = T.alloc_fragment((block_M,), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.clear(acc)
            T.clear(total)
            T.fill(row_max, -T.infinity(accum_dtype))
            head_kv = by // group
            past = tokens_kv - tokens
            visible = T.min(tokens_kv, past + (bx + 1) * block_M)
            for k in T.Pipelined(T.ceildiv(visible, block_N), num_stages=2):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, head_kv, :], K_shared)
                T.clear(scores)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.if_then_else(
                        k * block_N + j <= past + bx * block_M + i,
                        scores[i, j],
                        -T.infinity(accum_dtype),
                    )
                T.copy(row_max, row_max_before)
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2((row_max_before[i] - row_max[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - row_max[i]) * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]
                T.copy(V[bz, k * block_N : (k + 1) * block_N, head_kv, :], V_shared)
                T.gemm(weights, V_shared, acc)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= total[i]
            T.copy(acc, O_shared)
            T.copy(O_shared, O[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


def check(heads, group, dim, batch, tokens, tokens_kv):
    """Compare one size with torch."""
    torch.manual_seed(0)
    q = torch.randn(batch, tokens, heads, dim).bfloat16()
    k, v = (torch.randn(batch, tokens_kv, heads // group, dim).bfloat16() for _ in range(2))
    o = grouped_query_attention(heads, group, dim)(q, k, v)
    q, k, v = (x.float().transpose(1, 2) for x in (q, k, v))
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = q @ k.transpose(2, 3) / math.sqrt(dim)
    hidden = torch.ones(tokens, tokens_kv).triu(tokens_kv - tokens + 1).bool()
    expected = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
    torch.testing.assert_close(o.float(), expected.transpose(1, 2), rtol=2e-2, atol=2e-2)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"grouped-query attention: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
