"""Attention over sequences of different lengths, packed one after the other.

Q, K, V and O (tokens, heads, dim) float16; starts (batch + 1,) int32 says where each sequence
begins. Blocks beyond the end of their sequence have nothing to do.
"""

import math
from itertools import pairwise

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [([64, 32], 2, 32), ([70, 1, 33], 1, 64)]


@tilelang.jit(out_idx=[4])
def attention_varlen(batch, longest, heads, dim, block_M=64, block_N=64):
    """Attend causally within each sequence."""
    tokens = T.dynamic("tokens")
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (tokens, heads, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        starts: T.Tensor((batch + 1,), "int32"),
        O: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(longest, block_M), heads, batch, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), "float16")
            K_shared = T.alloc_shared((block_N, dim), "float16")
            V_shared = T.alloc_shared((block_N, dim), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), "float16")
            acc = T.alloc_fragment((block_M, dim), "float32")
            row_max = T.alloc_fragment((block_M,), "float32")
            row_max_before = T.alloc_fragment((block_M,), "float32")
            rescale = T.alloc_fragment((block_M,), "float32")
            row_sum = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")

            start = starts[bz]
            length = starts[bz + 1] - start
            if bx * block_M < length:
                first_query = start + bx * block_M
                T.copy(Q[first_query : first_query + block_M, by, :], Q_shared)
                T.clear(acc)
                T.clear(total)
                T.fill(row_max, -T.infinity("float32"))
                steps = T.ceildiv(T.min(length, (bx + 1) * block_M), block_N)
                for k in T.Pipelined(steps, num_stages=2):
                    first = start + k * block_N
                    T.copy(K[first : first + block_N, by, :], K_shared)
                    for i, j in T.Parallel(block_M, block_N):
                        visible = k * block_N + j <= bx * block_M + i
                        scores[i, j] = T.if_then_else(visible, 0, -T.infinity("float32"))
                    T.gemm(
                        Q_shared,
                        K_shared,
                        scores,
                        transpose_B=True,
                        policy=T.GemmWarpPolicy.FullRow,
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
                    T.copy(V[first : first + block_N, by, :], V_shared)
                    T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_M, dim):
                    if bx * block_M + i < length:
                        O[start + bx * block_M + i, by, j] = acc[i, j] / total[i]

    return main


def check(lengths, heads, dim):
    """Compare one batch with torch, sequence by sequence."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(sum(lengths), heads, dim).half() for _ in range(3))
    starts = torch.tensor([0, *lengths]).cumsum(0).int()
    o = attention_varlen(len(lengths), max(lengths), heads, dim)(q, k, v, starts)
    for first, last in pairwise(starts):
        one = [x[first:last].float().transpose(0, 1)[None] for x in (q, k, v)]
        expected = torch.nn.functional.scaled_dot_product_attention(*one, is_causal=True)
        found = o[first:last].float().transpose(0, 1)[None]
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=2e-3)


def main():
    """Check all batches."""
    for size in SIZES:
        check(*size)
    print(f"attention over packed sequences: {len(SIZES)} batches agree with torch")


if __name__ == "__main__":
    main()
