"""Attention over packed sequences of different lengths, by cu_seqlens, GQA, causal."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[6])
def flashattn_varlen(batch, UQ, UKV, heads, dim, is_causal, groups, block_M=32, block_N=32):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    head_kv = heads // groups
    dtype, accum = T.float16, T.float32

    @T.prim_func
    def main(
        Q: T.Tensor([UQ, heads, dim], dtype),
        K: T.Tensor([UKV, head_kv, dim], dtype),
        V: T.Tensor([UKV, head_kv, dim], dtype),
        cu_q: T.Tensor([batch + 1], T.int32),
        cu_k: T.Tensor([batch + 1], T.int32),
        max_seqlen_q: T.int32,
        O: T.Tensor([UQ, heads, dim], dtype),
    ):
        with T.Kernel(T.ceildiv(max_seqlen_q, block_M), heads, batch, threads=128) as (bx, by, bz):
            q = T.alloc_shared([block_M, dim], dtype)
            k = T.alloc_shared([block_N, dim], dtype)
            v = T.alloc_shared([block_N, dim], dtype)
            s = T.alloc_fragment([block_M, block_N], accum)
            p = T.alloc_fragment([block_M, block_N], dtype)
            o = T.alloc_fragment([block_M, dim], accum)
            m = T.alloc_fragment([block_M], accum)
            m_prev = T.alloc_fragment([block_M], accum)
            rescale = T.alloc_fragment([block_M], accum)
            part = T.alloc_fragment([block_M], accum)
            total = T.alloc_fragment([block_M], accum)
            q_start, q_end = cu_q[bz], cu_q[bz + 1]
            k_start, k_end = cu_k[bz], cu_k[bz + 1]
            q_len = q_end - q_start
            k_len = k_end - k_start
            offset = k_len - q_len

            T.copy(Q[q_start + bx * block_M : q_start + (bx + 1) * block_M, by, :], q)
            T.fill(o, 0)
            T.fill(total, 0)
            T.fill(m, -(2.0**30))
            rounds = (
                T.max(
                    0,
                    T.min(
                        T.ceildiv(offset + (bx + 1) * block_M, block_N), T.ceildiv(k_len, block_N)
                    ),
                )
                if is_causal
                else T.ceildiv(k_len, block_N)
            )
            for n in T.Pipelined(rounds, num_stages=1):
                T.copy(K[k_start + n * block_N : k_start + (n + 1) * block_N, by // groups, :], k)
                for i, j in T.Parallel(block_M, block_N):
                    row = bx * block_M + i
                    col = n * block_N + j
                    keep = (col < k_len) & (row < q_len)
                    if is_causal:
                        s[i, j] = T.if_then_else(keep & (row + offset >= col), 0, -1e9)
                    else:
                        s[i, j] = T.if_then_else(keep, 0, -1e9)
                T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(m, m_prev)
                T.reduce_max(s, m, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2((m_prev[i] - m[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    s[i, j] = T.exp2((s[i, j] - m[i]) * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + part[i]
                T.copy(s, p)
                for i, j in T.Parallel(block_M, dim):
                    o[i, j] *= rescale[i]
                T.copy(V[k_start + n * block_N : k_start + (n + 1) * block_N, by // groups, :], v)
                T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                if bx * block_M + i < q_len:
                    O[q_start + bx * block_M + i, by, j] = o[i, j] / total[i]

    return main


def reference(q, k, v, lens_q, lens_k, groups, is_causal):
    outs, at_q, at_k = [], 0, 0
    for lq, lk in zip(lens_q, lens_k):
        qi = q[at_q : at_q + lq].float()
        ki, vi = (x[at_k : at_k + lk].float().repeat_interleave(groups, 1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", qi, ki) * q.shape[-1] ** -0.5
        if is_causal:
            rows = torch.arange(lq)[:, None] + lk - lq
            scores = scores.masked_fill(rows < torch.arange(lk)[None, :], float("-inf"))
        outs.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), vi))
        at_q, at_k = at_q + lq, at_k + lk
    return torch.cat(outs)


def run(lens_q, lens_k, heads=4, groups=2, dim=32, is_causal=True):
    q = torch.randn(sum(lens_q), heads, dim, dtype=torch.half, device="cuda")
    k = torch.randn(sum(lens_k), heads // groups, dim, dtype=torch.half, device="cuda")
    v = torch.randn_like(k)
    cu_q, cu_k = (
        torch.nn.functional.pad(torch.tensor(x, device="cuda").cumsum(0), (1, 0)).int()
        for x in (lens_q, lens_k)
    )
    kernel = flashattn_varlen(len(lens_q), q.shape[0], k.shape[0], heads, dim, is_causal, groups)
    out = kernel(q, k, v, cu_q, cu_k, max(lens_q))
    expected = reference(q.cpu(), k.cpu(), v.cpu(), lens_q, lens_k, groups, is_causal)
    torch.testing.assert_close(out.cpu().float(), expected, rtol=2e-2, atol=2e-2)
    print(f"lengths {lens_q} and {lens_k}, causal={is_causal}: ok")


if __name__ == "__main__":
    torch.manual_seed(0)
    run([17, 64, 5], [40, 64, 33])
    run([50, 8], [50, 70], is_causal=False)
