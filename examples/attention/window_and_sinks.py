"""Sliding-window attention with a learned sink: each head may attend to nothing.

Q, K, V and O (heads, tokens, dim) float16; sinks (heads,) float32 is one more logit in the
softmax that has no value. Query i sees the `window` keys up to and including i.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(2, 64, 32, 16), (1, 150, 64, 40), (1, 100, 32, 1000)]


@tilelang.jit(out_idx=[4])
def attention_window_sinks(heads, tokens, dim, window, block_M=32, block_N=32):
    """Attend to a band below the diagonal; blocks outside the band are skipped."""
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (heads, tokens, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        sinks: T.Tensor((heads,), "float32"),
        O: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(tokens, block_M), heads, threads=128) as (bx, by):
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

            T.annotate_layout({Q_shared: T.make_swizzled_layout(Q_shared)})
            T.copy(Q[by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.clear(acc)
            T.clear(total)
            T.fill(row_max, -T.infinity("float32"))
            first = T.max(0, bx * block_M - window + 1) // block_N
            last = T.ceildiv(T.min(tokens, (bx + 1) * block_M), block_N)
            for k in T.Pipelined(first, last, num_stages=2):
                T.copy(K[by, k * block_N : (k + 1) * block_N, :], K_shared)
                for i, j in T.Parallel(block_M, block_N):
                    distance = bx * block_M + i - (k * block_N + j)
                    inside = 0 <= distance < window
                    scores[i, j] = T.if_then_else(inside, 0, -T.infinity("float32"))
                T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                T.copy(row_max, row_max_before)
                T.reduce_max(scores, row_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    # A row may have seen no key so far: its maximum must not be infinite.
                    row_max[i] = T.max(row_max[i], -1e30)
                    rescale[i] = T.exp2((row_max_before[i] - row_max[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - row_max[i]) * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]
                T.copy(V[by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, acc)
            for i in T.Parallel(block_M):
                total[i] += T.exp2(sinks[by] * math.log2(math.e) - row_max[i] * scale)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= total[i]
            T.copy(acc, O[by, bx * block_M : (bx + 1) * block_M, :])

    return main


def check(heads, tokens, dim, window):
    """Compare one size with torch."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(heads, tokens, dim).half() for _ in range(3))
    sinks = torch.randn(heads)
    o = attention_window_sinks(heads, tokens, dim, window)(q, k, v, sinks)
    scores = q.float() @ k.float().transpose(1, 2) / math.sqrt(dim)
    seen = torch.ones(tokens, tokens).tril().triu(1 - window).bool()
    scores.masked_fill_(~seen, -math.inf)
    logits = torch.cat([scores, sinks[:, None, None].expand(-1, tokens, 1)], -1)
    expected = logits.softmax(-1)[..., :-1] @ v.float()
    torch.testing.assert_close(o.float(), expected, rtol=1e-2, atol=2e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"sliding-window attention with sinks: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
