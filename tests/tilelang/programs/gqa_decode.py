"""Grouped-query decoding with split KV: partial results, then a combining kernel."""

import tilelang
import tilelang.language as T
import torch
import torch.nn.functional as F


@tilelang.jit(out_idx=[5])
def gqa_decode(batch, heads, groups, seqlen_kv, dim, num_split, block_N=32, block_H=16):
    kv_group_num = heads // groups
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    dtype, accum = "float16", "float"
    part_shape = [batch, heads, num_split, dim]
    valid_block_H = min(block_H, kv_group_num)
    per_split = seqlen_kv // num_split

    @T.prim_func
    def main(
        Q: T.Tensor([batch, heads, dim], dtype),
        K: T.Tensor([batch, seqlen_kv, groups, dim], dtype),
        V: T.Tensor([batch, seqlen_kv, groups, dim], dtype),
        glse: T.Tensor([batch, heads, num_split], accum),
        Output_partial: T.Tensor(part_shape, accum),
        Output: T.Tensor([batch, heads, dim], dtype),
    ):
        with T.Kernel(batch, heads // valid_block_H, num_split, threads=128) as (bx, by, bz):
            Q_shared = T.alloc_shared([block_H, dim], dtype)
            K_shared = T.alloc_shared([block_N, dim], dtype)
            V_shared = T.alloc_shared([block_N, dim], dtype)
            acc_s = T.alloc_fragment([block_H, block_N], accum)
            acc_s_cast = T.alloc_fragment([block_H, block_N], dtype)
            acc_o = T.alloc_fragment([block_H, dim], accum)
            m = T.alloc_fragment([block_H], accum)
            m_prev = T.alloc_fragment([block_H], accum)
            alpha = T.alloc_fragment([block_H], accum)
            row_sum = T.alloc_fragment([block_H], accum)
            logsum = T.alloc_fragment([block_H], accum)

            head = by * valid_block_H
            group = head // kv_group_num
            T.copy(Q[bx, head : head + block_H, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(m, -T.infinity(accum))
            for k in T.Pipelined(T.ceildiv(per_split, block_N), num_stages=2):
                first = bz * per_split + k * block_N
                T.copy(K[bx, first : first + block_N, group, :], K_shared)
                T.clear(acc_s)
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True)
                T.copy(m, m_prev)
                T.reduce_max(acc_s, m, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    alpha[i] = T.exp2(m_prev[i] * scale - m[i] * scale)
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - m[i] * scale)
                T.reduce_sum(acc_s, row_sum, dim=1)
                for i in T.Parallel(block_H):
                    logsum[i] = logsum[i] * alpha[i] + row_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_H, dim):
                    acc_o[i, j] *= alpha[i]
                T.copy(V[bx, first : first + block_N, group, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o)
            for i, j in T.Parallel(block_H, dim):
                if i < valid_block_H:
                    Output_partial[bx, head + i, bz, j] = acc_o[i, j] / logsum[i]
            for i in T.Parallel(block_H):
                if i < valid_block_H:
                    glse[bx, head + i, bz] = T.log2(logsum[i]) + m[i] * scale

        with T.Kernel(heads, batch, threads=128) as (by, bz):
            po = T.alloc_fragment([dim], accum)
            o = T.alloc_fragment([dim], accum)
            top = T.alloc_var(accum, init=-1e30)
            total = T.alloc_var(accum, init=0)
            share = T.alloc_var(accum, init=0)
            T.clear(o)
            for k in T.serial(num_split):
                top = T.max(top, glse[bz, by, k])
            for k in T.serial(num_split):
                total = total + T.exp2(glse[bz, by, k] - top)
            for k in T.serial(num_split):
                share = T.exp2(glse[bz, by, k] - top) / total
                for i in T.Parallel(dim):
                    po[i] = Output_partial[bz, by, k, i]
                for i in T.Parallel(dim):
                    o[i] += po[i] * share
            for i in T.Parallel(dim):
                Output[bz, by, i] = o[i]

    return main


def main(batch=2, heads=8, groups=2, kv_seqlen=256, dim=32, num_split=4):
    q = torch.randn(batch, heads, dim, device="cuda", dtype=torch.float16)
    k = torch.randn(batch, kv_seqlen, groups, dim, device="cuda", dtype=torch.float16)
    v = torch.randn_like(k)
    glse = torch.empty(batch, heads, num_split, device="cuda")
    partial = torch.empty(batch, heads, num_split, dim, device="cuda")
    kernel = gqa_decode(batch, heads, groups, kv_seqlen, dim, num_split)
    o = kernel(q, k, v, glse, partial)

    kk, vv = (x.float().repeat_interleave(heads // groups, 2).transpose(1, 2) for x in (k, v))
    expected = F.scaled_dot_product_attention(q.float().unsqueeze(2), kk, vv).squeeze(2)
    torch.testing.assert_close(o.float(), expected, rtol=1e-2, atol=1e-2)
    print("GQA decoding: all checks pass")


if __name__ == "__main__":
    main()
