"""Decoding with split keys: one query per head, and the cache shared among several blocks.

Q and O (batch, heads, dim), K and V (batch, tokens, heads / group, dim) float16. The first
kernel leaves, for each split, a normalised output and its log-sum-exp; the second launch, in
the same function, combines them.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 4, 4, 32, 128, 2), (2, 8, 4, 64, 300, 3), (1, 2, 2, 32, 40, 4)]


@tilelang.jit(out_idx=[-1])
def decode(batch, heads, group, dim, tokens, splits, block_H=16, block_N=64):
    """Attend with one query per head; the heads of a group form the rows of a tile."""
    scale = math.log2(math.e) / math.sqrt(dim)
    dtype, accum_dtype = "float16", "float32"
    kv_shape = (batch, tokens, heads // group, dim)
    steps = T.ceildiv(T.ceildiv(tokens, splits), block_N)

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), dtype),
        K: T.Tensor(kv_shape, dtype),
        V: T.Tensor(kv_shape, dtype),
        lse: T.Tensor((batch, heads, splits), accum_dtype),
        partial: T.Tensor((batch, heads, splits, dim), accum_dtype),
        O: T.Tensor((batch, heads, dim), dtype),
    ):
        with T.Kernel(batch, heads // group, splits, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_H, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_H, block_N), accum_dtype)
            weights = T.alloc_fragment((block_H, block_N), dtype)
            acc = T.alloc_fragment((block_H, dim), accum_dtype)
            row_max = T.alloc_fragment((block_H,), accum_dtype)
            row_max_before = T.alloc_fragment((block_H,), accum_dtype)
            rescale = T.alloc_fragment((block_H,), accum_dtype)
            row_sum = T.alloc_fragment((block_H,), accum_dtype)
            total = T.alloc_fragment((block_H,), accum_dtype)

            T.copy(Q[bx, by * group : by * group + block_H, :], Q_shared)
            T.clear(acc)
            T.clear(total)
            T.fill(row_max, -1e30)
            for k in T.Pipelined(steps, num_stages=2):
                first = (bz * steps + k) * block_N
                T.copy(K[bx, first : first + block_N, by, :], K_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_H, block_N):
                    scores[i, j] = T.if_then_else(
                        first + j < tokens, scores[i, j], -T.infinity(accum_dtype)
                    )
                T.copy(row_max, row_max_before)
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    rescale[i] = T.exp2((row_max_before[i] - row_max[i]) * scale)
                for i, j in T.Parallel(block_H, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - row_max[i]) * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_H):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_H, dim):
                    acc[i, j] *= rescale[i]
                T.copy(V[bx, first : first + block_N, by, :], V_shared)
                T.gemm(weights, V_shared, acc)
            for i, j in T.Parallel(block_H, dim):
                if i < group:
                    partial[bx, by * group + i, bz, j] = acc[i, j] / T.max(total[i], 1e-30)
            for i in T.Parallel(block_H):
                if i < group:
                    lse[bx, by * group + i, bz] = T.log2(total[i]) + row_max[i] * scale

        with T.Kernel(heads, batch, threads=128) as (by, bz):
            lse_local = T.alloc_fragment((splits,), accum_dtype)
            lse_max = T.alloc_fragment((1,), accum_dtype)
            lse_sum = T.alloc_fragment((1,), accum_dtype)
            acc = T.alloc_fragment((dim,), accum_dtype)
            T.copy(lse[bz, by, :], lse_local)
            T.reduce_max(lse_local, lse_max, dim=0)
            for s in T.Parallel(splits):
                lse_local[s] = T.exp2(lse_local[s] - lse_max[0])
            T.reduce_sum(lse_local, lse_sum, dim=0)
            T.clear(acc)
            for s in T.serial(splits):
                for j in T.Parallel(dim):
                    weight = T.exp2(lse[bz, by, s] - lse_max[0]) / lse_sum[0]
                    acc[j] += partial[bz, by, s, j] * weight
            T.copy(acc, O[bz, by, :])

    return main


def check(batch, heads, group, dim, tokens, splits):
    """Compare one size with torch."""
    torch.manual_seed(0)
    q = torch.randn(batch, heads, dim).half()
    k, v = (torch.randn(batch, tokens, heads // group, dim).half() for _ in range(2))
    scratch = (torch.full((batch, heads, splits, *d), math.nan) for d in ((), (dim,)))
    o = decode(batch, heads, group, dim, tokens, splits)(q, k, v, *scratch)
    k, v = (x.float().repeat_interleave(group, 2) for x in (k, v))
    scores = torch.einsum("bhd,bthd->bht", q.float(), k) / math.sqrt(dim)
    expected = torch.einsum("bht,bthd->bhd", scores.softmax(-1), v)
    torch.testing.assert_close(o.float(), expected, rtol=1e-2, atol=2e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"decoding with split keys: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
