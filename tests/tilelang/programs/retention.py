"""RetNet: retention with one decay per head, in parallel form."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[4])
def retnet(batch, heads, seq_len, dim_qk, dim_v, block_M=32, block_N=32):
    qk_shape = [batch, seq_len, heads, dim_qk]
    v_shape = [batch, seq_len, heads, dim_v]
    dtype = "float16"

    @T.prim_func
    def main(
        Q: T.Tensor(qk_shape, dtype),
        K: T.Tensor(qk_shape, dtype),
        V: T.Tensor(v_shape, dtype),
        mask: T.Tensor([heads, seq_len, seq_len], dtype),
        Output: T.Tensor(v_shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=128) as (bx, by, bz):
            q = T.alloc_shared([block_M, dim_qk], dtype)
            k = T.alloc_shared([block_N, dim_qk], dtype)
            v = T.alloc_shared([block_N, dim_v], dtype)
            decay = T.alloc_shared([block_M, block_N], dtype)
            s = T.alloc_fragment([block_M, block_N], "float")
            p = T.alloc_fragment([block_M, block_N], dtype)
            o = T.alloc_fragment([block_M, dim_v], "float")
            weight = T.alloc_fragment([block_M], "float")
            total = T.alloc_fragment([block_M], "float")
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], q)
            T.clear(o)
            T.clear(total)
            for n in T.Pipelined(T.ceildiv((bx + 1) * block_M, block_N), num_stages=1):
                T.copy(K[bz, n * block_N : (n + 1) * block_N, by, :], k)
                T.copy(V[bz, n * block_N : (n + 1) * block_N, by, :], v)
                T.copy(
                    mask[by, bx * block_M : (bx + 1) * block_M, n * block_N : (n + 1) * block_N],
                    decay,
                )
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    s[i, j] *= decay[i, j]
                T.reduce_abssum(s, weight, dim=1)
                for i in T.Parallel(block_M):
                    total[i] += weight[i]
                T.copy(s, p)
                T.gemm(p, v, o)
            for i, j in T.Parallel(block_M, dim_v):
                o[i, j] /= T.max(total[i], 1.0)
            T.copy(o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return main


def ref_program(Q, K, V, mask):
    qk = torch.einsum("bqhd,bkhd->bhqk", Q.float(), K.float()) * mask.float()
    total = qk.abs().sum(-1, keepdim=True).clamp(min=1.0)
    return torch.einsum("bhqk,bkhd->bqhd", qk / total, V.float())


B, H, S, DK, DV = 1, 3, 96, 32, 64
q, k = (torch.randn(B, S, H, DK, device="cuda").half() for _ in range(2))
v = torch.randn(B, S, H, DV, device="cuda").half()
gamma = 1 - 2.0 ** (-5 - torch.arange(H, device="cuda").float())
distance = torch.arange(S, device="cuda")[:, None] - torch.arange(S, device="cuda")[None, :]
mask = torch.where(distance >= 0, gamma[:, None, None] ** distance.clamp(min=0), 0.0).half()
out = retnet(B, H, S, DK, DV)(q, k, v, mask)
torch.testing.assert_close(out.float(), ref_program(q, k, v, mask), rtol=1e-2, atol=1e-2)
print("RetNet: all checks pass")
