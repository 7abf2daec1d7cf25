"""FlashAttention-2 forward, written with macros, layout bshd, causal or full."""

import argparse

import tilelang
import tilelang.language as T
import torch
import torch.nn.functional as F
from tilelang.profiler import do_bench


@tilelang.jit(
    out_idx=[3],
    pass_configs={
        tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True,
    },
)
def flashattn(
    batch, heads, seq_len, dim, is_causal, block_M=64, block_N=64, num_stages=1, threads=128
):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape = [batch, seq_len, heads, dim]
    dtype = T.float16
    accum_dtype = T.float32

    @T.macro
    def MMA0(
        K: T.Tensor(shape, dtype),
        Q_shared: T.SharedBuffer([block_M, dim], dtype),
        K_shared: T.SharedBuffer([block_N, dim], dtype),
        acc_s: T.FragmentBuffer([block_M, block_N], accum_dtype),
        k: T.int32,
        bx: T.int32,
        by: T.int32,
        bz: T.int32,
    ):
        T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
        if is_causal:
            for i, j in T.Parallel(block_M, block_N):
                acc_s[i, j] = T.if_then_else(
                    bx * block_M + i >= k * block_N + j, 0, -T.infinity(acc_s.dtype)
                )
        else:
            for i, j in T.Parallel(block_M, block_N):
                acc_s[i, j] = T.if_then_else(
                    k * block_N + j >= seq_len, -T.infinity(acc_s.dtype), 0
                )
        T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

    @T.macro
    def MMA1(V, V_shared, acc_s_cast, acc_o, k, by, bz):
        T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)
        T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

    @T.macro
    def Softmax(acc_s, acc_s_cast, m, m_prev, rescale, row_sum, logsum):
        T.copy(m, m_prev)
        T.fill(m, -T.infinity(accum_dtype))
        T.reduce_max(acc_s, m, dim=1, clear=False)
        for i in T.Parallel(block_M):
            m[i] = T.max(m[i], m_prev[i])
            rescale[i] = T.exp2(m_prev[i] * scale - m[i] * scale)
        for i, j in T.Parallel(block_M, block_N):
            acc_s[i, j] = T.exp2(acc_s[i, j] * scale - m[i] * scale)
        T.reduce_sum(acc_s, row_sum, dim=1)
        for i in T.Parallel(block_M):
            logsum[i] = logsum[i] * rescale[i] + row_sum[i]
        T.copy(acc_s, acc_s_cast)

    @T.macro
    def Rescale(acc_o, rescale):
        for i, j in T.Parallel(block_M, dim):
            acc_o[i, j] *= rescale[i]

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Output: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared([block_M, dim], dtype)
            K_shared = T.alloc_shared([block_N, dim], dtype)
            V_shared = T.alloc_shared([block_N, dim], dtype)
            O_shared = T.alloc_shared([block_M, dim], dtype)
            acc_s = T.alloc_fragment([block_M, block_N], accum_dtype)
            acc_s_cast = T.alloc_fragment([block_M, block_N], dtype)
            acc_o = T.alloc_fragment([block_M, dim], accum_dtype)
            m = T.alloc_fragment([block_M], accum_dtype)
            m_prev = T.alloc_fragment([block_M], accum_dtype)
            rescale = T.alloc_fragment([block_M], accum_dtype)
            row_sum = T.alloc_fragment([block_M], accum_dtype)
            logsum = T.alloc_fragment([block_M], accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(m, -T.infinity(accum_dtype))
            loop_range = (
                T.min(T.ceildiv(seq_len, block_N), T.ceildiv((bx + 1) * block_M, block_N))
                if is_causal
                else T.ceildiv(seq_len, block_N)
            )
            for k in T.Pipelined(loop_range, num_stages=num_stages):
                MMA0(K, Q_shared, K_shared, acc_s, k, bx, by, bz)
                Softmax(acc_s, acc_s_cast, m, m_prev, rescale, row_sum, logsum)
                Rescale(acc_o, rescale)
                MMA1(V, V_shared, acc_s_cast, acc_o, k, by, bz)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O_shared)
            T.copy(O_shared, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


def ref_program(Q, K, V, is_causal):
    q, k, v = (x.transpose(1, 2).float() for x in (Q, K, V))
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal).transpose(1, 2).half()


def main(batch=1, heads=2, seq_len=160, dim=64, is_causal=False):
    flops = 4.0 * batch * heads * seq_len * seq_len * dim * (0.5 if is_causal else 1)
    kernel = flashattn(batch, heads, seq_len, dim, is_causal)
    q, k, v = (
        torch.randn(batch, seq_len, heads, dim, device="cuda", dtype=torch.half) for _ in range(3)
    )
    torch.testing.assert_close(
        kernel(q, k, v), ref_program(q, k, v, is_causal), rtol=1e-2, atol=1e-2
    )
    latency = do_bench(lambda: kernel(q, k, v), warmup=1, rep=2)
    print(f"causal={is_causal}: {latency:.2f} ms, {flops / latency * 1e-9:.4f} TFlops")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seq_len", type=int, default=160)
    parser.add_argument("--is_causal", action="store_true")
    args = parser.parse_args()
    main(seq_len=args.seq_len, is_causal=args.is_causal)
    main(seq_len=192, is_causal=True)
