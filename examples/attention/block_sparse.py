"""Block-sparse attention: a mask says which blocks of keys a block of queries looks at.

Q, K, V and O (heads, tokens, dim) float16; mask (heads, tokens / 32, tokens / 32) bool. Blocks
that are masked out are neither loaded nor multiplied; within the rest, attention is causal.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64, 32), (2, 160, 64)]
BLOCK = 32


@tilelang.jit(out_idx=[4])
def block_sparse_attention(heads, tokens, dim):
    """Attend where the mask allows it."""
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (heads, tokens, dim)
    blocks = tokens // BLOCK

    @T.macro
    def softmax_step(scores, row_max, row_max_before, rescale, row_sum, total):
        T.copy(row_max, row_max_before)
        T.reduce_max(scores, row_max, dim=1, clear=False)
        for i in T.Parallel(BLOCK):
            rescale[i] = T.exp2((row_max_before[i] - row_max[i]) * scale)
        for i, j in T.Parallel(BLOCK, BLOCK):
            scores[i, j] = T.exp2((scores[i, j] - row_max[i]) * scale)
        T.reduce_sum(scores, row_sum, dim=1)
        for i in T.Parallel(BLOCK):
            total[i] = total[i] * rescale[i] + row_sum[i]

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        mask: T.Tensor((heads, blocks, blocks), "bool"),
        O: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(blocks, heads, threads=128) as (bx, by):
            Q_shared = T.alloc_shared((BLOCK, dim), "float16")
            K_shared = T.alloc_shared((BLOCK, dim), "float16")
            V_shared = T.alloc_shared((BLOCK, dim), "float16")
            scores = T.alloc_fragment((BLOCK, BLOCK), "float32")
            weights = T.alloc_fragment((BLOCK, BLOCK), "float16")
            acc = T.alloc_fragment((BLOCK, dim), "float32")
            row_max = T.alloc_fragment((BLOCK,), "float32")
            row_max_before = T.alloc_fragment((BLOCK,), "float32")
            rescale = T.alloc_fragment((BLOCK,), "float32")
            row_sum = T.alloc_fragment((BLOCK,), "float32")
            total = T.alloc_fragment((BLOCK,), "float32")
            selected = T.alloc_local((blocks,), "bool")

            T.copy(Q[by, bx * BLOCK : (bx + 1) * BLOCK, :], Q_shared)
            T.clear(acc)
            T.clear(total)
            T.fill(row_max, -T.infinity("float32"))
            for k in T.serial(blocks):
                selected[k] = mask[by, bx, k]
            for k in T.Pipelined(bx + 1, num_stages=2):
                if selected[k]:
                    T.copy(K[by, k * BLOCK : (k + 1) * BLOCK, :], K_shared)
                    for i, j in T.Parallel(BLOCK, BLOCK):
                        visible = k * BLOCK + j <= bx * BLOCK + i
                        scores[i, j] = T.if_then_else(visible, 0, -T.infinity("float32"))
                    T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                    softmax_step(scores, row_max, row_max_before, rescale, row_sum, total)
                    T.copy(scores, weights)
                    for i, j in T.Parallel(BLOCK, dim):
                        acc[i, j] *= rescale[i]
                    T.copy(V[by, k * BLOCK : (k + 1) * BLOCK, :], V_shared)
                    T.gemm(weights, V_shared, acc)
            for i, j in T.Parallel(BLOCK, dim):
                acc[i, j] /= total[i]
            T.copy(acc, O[by, bx * BLOCK : (bx + 1) * BLOCK, :])

    return main


def check(heads, tokens, dim):
    """Compare one size with torch."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(heads, tokens, dim).half() for _ in range(3))
    mask = torch.rand(heads, tokens // BLOCK, tokens // BLOCK) < 0.5
    mask |= torch.eye(tokens // BLOCK).bool()
    o = block_sparse_attention(heads, tokens, dim)(q, k, v, mask)
    seen = mask.repeat_interleave(BLOCK, 1).repeat_interleave(BLOCK, 2)
    seen &= torch.ones(tokens, tokens).tril().bool()
    scores = q.float() @ k.float().transpose(1, 2) / math.sqrt(dim)
    expected = scores.masked_fill(~seen, -math.inf).softmax(-1) @ v.float()
    torch.testing.assert_close(o.float(), expected, rtol=1e-2, atol=2e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"block-sparse attention: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
