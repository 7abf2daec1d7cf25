"""Attention for Hopper without writing roles: the compiler splits producers from consumers."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[3])
def attention(seq, dim, block_M=64, block_N=64):
    scale = dim**-0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((seq, dim), "float16"),
        K: T.Tensor((seq, dim), "float16"),
        V: T.Tensor((seq, dim), "float16"),
        O: T.Tensor((seq, dim), "float16"),
    ):
        with T.Kernel(T.ceildiv(seq, block_M), threads=128) as bx:
            q = T.alloc_shared((block_M, dim), "float16")
            k = T.alloc_shared((block_N, dim), "float16")
            v = T.alloc_shared((block_N, dim), "float16")
            s = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_fragment((block_M, block_N), "float16")
            o = T.alloc_fragment((block_M, dim), "float32")
            m = T.alloc_fragment((block_M,), "float32")
            m_prev = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[bx * block_M, 0], q)
            T.clear(o)
            T.clear(total)
            T.fill(m, -T.infinity("float32"))
            for n in T.Pipelined(T.ceildiv(seq, block_N), num_stages=2):
                T.copy(K[n * block_N, 0], k)
                T.gemm(q, k, s, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(m, m_prev)
                T.reduce_max(s, m, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    m_prev[i] = T.exp2((m_prev[i] - m[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    s[i, j] = T.exp2((s[i, j] - m[i]) * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * m_prev[i] + part[i]
                for i, j in T.Parallel(block_M, dim):
                    o[i, j] *= m_prev[i]
                T.copy(s, p)
                T.copy(V[n * block_N, 0], v)
                T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                o[i, j] /= total[i]
            T.copy(o, O[bx * block_M, 0])

    return main


torch.manual_seed(0)
q, k, v = (torch.randn(128, 64, device="cuda", dtype=torch.float16) for _ in range(3))
out = attention(128, 64)(q, k, v)
expected = torch.softmax(q.float() @ k.float().T * 64**-0.5, -1) @ v.float()
torch.testing.assert_close(out.float(), expected, rtol=1e-2, atol=1e-2)
print(f"attention on {torch.cuda.get_device_name()}: ok")
