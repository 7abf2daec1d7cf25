"""Listing B.3 of the paper: FlashMLA, decoding with multi-head latent attention.

Q (batch, heads, dim), Q_pe (batch, heads, pe_dim); KV (batch, tokens, kv_heads, dim) serves as
keys and as values, K_pe (batch, tokens, kv_heads, pe_dim) carries positions; O like Q; float16.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 16, 1, 64, 64, 32), (2, 32, 2, 192, 128, 64)]


@tilelang.jit(out_idx=[-1])
def flash_mla(
    batch, heads, kv_head_num, seqlen_kv, dim, pe_dim, block_N=64, block_H=16, num_stages=2
):
    """Attend with one query per head; all heads of a group share keys and values."""
    scale = math.log2(math.e) / math.sqrt(dim + pe_dim)
    kv_group_num = heads // kv_head_num
    VALID_BLOCK_H = min(block_H, kv_group_num)
    dtype, accum_dtype = "float16", "float32"

    @T.prim_func
    def flash_attn(
        Q: T.Tensor([batch, heads, dim], dtype),
        Q_pe: T.Tensor([batch, heads, pe_dim], dtype),
        KV: T.Tensor([batch, seqlen_kv, kv_head_num, dim], dtype),
        K_pe: T.Tensor([batch, seqlen_kv, kv_head_num, pe_dim], dtype),
        Output: T.Tensor([batch, heads, dim], dtype),
    ):
        with T.Kernel(batch, heads // min(block_H, kv_group_num), threads=256) as (bx, by):
            Q_shared = T.alloc_shared([block_H, dim], dtype)
            S_shared = T.alloc_shared([block_H, block_N], dtype)
            Q_pe_shared = T.alloc_shared([block_H, pe_dim], dtype)
            KV_shared = T.alloc_shared([block_N, dim], dtype)
            K_pe_shared = T.alloc_shared([block_N, pe_dim], dtype)
            O_shared = T.alloc_shared([block_H, dim], dtype)
            acc_s = T.alloc_fragment([block_H, block_N], accum_dtype)
            acc_o = T.alloc_fragment([block_H, dim], accum_dtype)
            scores_max = T.alloc_fragment([block_H], accum_dtype)
            scores_max_prev = T.alloc_fragment([block_H], accum_dtype)
            scores_scale = T.alloc_fragment([block_H], accum_dtype)
            scores_sum = T.alloc_fragment([block_H], accum_dtype)
            logsum = T.alloc_fragment([block_H], accum_dtype)

            cur_kv_head = by // (kv_group_num // block_H)
            T.use_swizzle(10)

            T.copy(Q[bx, by * VALID_BLOCK_H : (by + 1) * VALID_BLOCK_H, :], Q_shared)
            T.copy(Q_pe[bx, by * VALID_BLOCK_H : (by + 1) * VALID_BLOCK_H, :], Q_pe_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))

            loop_range = T.ceildiv(seqlen_kv, block_N)
            for k in T.Pipelined(loop_range, num_stages=num_stages):
                T.copy(KV[bx, k * block_N : (k + 1) * block_N, cur_kv_head, :], KV_shared)
                T.copy(K_pe[bx, k * block_N : (k + 1) * block_N, cur_kv_head, :], K_pe_shared)
                T.clear(acc_s)
                T.gemm(
                    Q_shared, KV_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol
                )
                T.gemm(
                    Q_pe_shared,
                    K_pe_shared,
                    acc_s,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullCol,
                )
                T.copy(scores_max, scores_max_prev)
                T.fill(scores_max, -T.infinity(accum_dtype))
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                T.copy(acc_s, S_shared)
                for i in T.Parallel(block_H):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                for i, j in T.Parallel(block_H, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.gemm(S_shared, KV_shared, acc_o, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(block_H, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O_shared)
            T.copy(O_shared, Output[bx, by * VALID_BLOCK_H : (by + 1) * VALID_BLOCK_H, :])

    return flash_attn


def check(batch, heads, kv_heads, tokens, dim, pe_dim, **tiles):
    """Compare one size with torch."""
    torch.manual_seed(0)
    q, q_pe = torch.randn(batch, heads, dim).half(), torch.randn(batch, heads, pe_dim).half()
    kv = torch.randn(batch, tokens, kv_heads, dim).half()
    k_pe = torch.randn(batch, tokens, kv_heads, pe_dim).half()
    o = flash_mla(batch, heads, kv_heads, tokens, dim, pe_dim, **tiles)(q, q_pe, kv, k_pe)
    query = torch.cat([q, q_pe], -1).float().view(batch, kv_heads, -1, dim + pe_dim)
    keys = torch.cat([kv, k_pe], -1).float()
    scores = torch.einsum("bgqd,btgd->bgqt", query, keys) / math.sqrt(dim + pe_dim)
    expected = torch.einsum("bgqt,btgd->bgqd", scores.softmax(-1), kv.float())
    torch.testing.assert_close(o.float(), expected.reshape(o.shape), rtol=1e-2, atol=2e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"listing B.3, FlashMLA: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
