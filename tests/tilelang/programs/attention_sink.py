"""Sliding-window attention with a learned sink per head, in eager style."""

import tilelang
import tilelang.language as T
import torch

LOG2E = 1.44269504


@tilelang.jit
def attention_sink(Q, K, V, sinks, window: int, scale: float, block_M: int = 32, block_N: int = 32):
    batch, heads, seq, dim = T.const("batch, heads, seq, dim")
    Q: T.Tensor[[batch, heads, seq, dim], T.bfloat16]
    K: T.Tensor[[batch, heads, seq, dim], T.bfloat16]
    V: T.Tensor[[batch, heads, seq, dim], T.bfloat16]
    sinks: T.Tensor[[heads], T.float32]
    O = T.empty([batch, heads, seq, dim], T.bfloat16)

    with T.Kernel(T.ceildiv(seq, block_M), heads, batch, threads=128) as (bx, by, bz):
        q = T.alloc_shared([block_M, dim], T.bfloat16)
        k = T.alloc_shared([block_N, dim], T.bfloat16)
        v = T.alloc_shared([block_N, dim], T.bfloat16)
        s = T.alloc_fragment([block_M, block_N], T.float32)
        p = T.alloc_fragment([block_M, block_N], T.bfloat16)
        o = T.alloc_fragment([block_M, dim], T.float32)
        m = T.alloc_fragment([block_M], T.float32)
        m_prev = T.alloc_fragment([block_M], T.float32)
        part = T.alloc_fragment([block_M], T.float32)
        total = T.alloc_fragment([block_M], T.float32)
        sink = T.alloc_fragment([block_M], T.float32)
        T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], q)
        T.clear(o)
        T.clear(total)
        T.fill(m, -T.infinity(T.float32))
        for i in T.Parallel(block_M):
            sink[i] = sinks[by] * LOG2E
        last = T.min(T.ceildiv(seq, block_N), T.ceildiv((bx + 1) * block_M, block_N))
        first = T.max(0, (bx * block_M - window) // block_N)
        for n in T.Pipelined(first, last, num_stages=2):
            T.copy(K[bz, by, n * block_N : (n + 1) * block_N, :], k)
            T.copy(V[bz, by, n * block_N : (n + 1) * block_N, :], v)
            for i, j in T.Parallel(block_M, block_N):
                row, col = bx * block_M + i, n * block_N + j
                s[i, j] = T.if_then_else(row >= col and col > row - window, 0, -1e30)
            T.gemm(q, k, s, transpose_B=True)
            T.copy(m, m_prev)
            T.reduce_max(s, m, dim=1, clear=False)
            for i in T.Parallel(block_M):
                m[i] = T.max(m[i], m_prev[i])
                m_prev[i] = T.exp2((m_prev[i] - m[i]) * scale * LOG2E)
            for i, j in T.Parallel(block_M, block_N):
                s[i, j] = T.exp2((s[i, j] - m[i]) * scale * LOG2E)
            T.reduce_sum(s, part, dim=1)
            for i in T.Parallel(block_M):
                total[i] = total[i] * m_prev[i] + part[i]
            for i, j in T.Parallel(block_M, dim):
                o[i, j] *= m_prev[i]
            T.copy(s, p)
            T.gemm(p, v, o)
        for i in T.Parallel(block_M):
            total[i] += T.exp2(sink[i] - m[i] * scale * LOG2E)
        for i, j in T.Parallel(block_M, dim):
            o[i, j] /= total[i]
        T.copy(o, O[bz, by, bx * block_M : (bx + 1) * block_M, :])
    return O


def reference(q, k, v, sinks, window):
    seq, dim = q.shape[-2:]
    scores = q.float() @ k.float().mT * dim**-0.5
    row, col = torch.arange(seq)[:, None], torch.arange(seq)[None, :]
    outside = (col > row) | (col <= row - window)
    scores = scores.masked_fill(outside.to(scores.device), float("-inf"))
    column = sinks.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    weights = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    return weights @ v.float()


B, H, S, D = 1, 3, 100, 32
q, k, v = (torch.randn(B, H, S, D, device="cuda", dtype=torch.bfloat16) for _ in range(3))
sinks = torch.randn(H, device="cuda")
for window in (16, 40):
    out = attention_sink(q, k, v, sinks, window=window, scale=D**-0.5)
    torch.testing.assert_close(out.float(), reference(q, k, v, sinks, window), rtol=3e-2, atol=3e-2)
    print(f"window {window}: ok")
