"""Chunked linear attention, forward: the state of all earlier tokens is a matrix."""

import tilelang as tl
import tilelang.language as T
import torch


@tl.jit(out_idx=[3, 4])
def tl_fused_chunk_fwd_kernel(B, S, H, DK, DV, dtype=T.float16, scale=None):
    if scale is None:
        scale = DK**-0.5
    accum_dtype = T.float32
    chunk_size = 32
    BK = BV = 32
    NV = tl.cdiv(DV, BV)
    NT = tl.cdiv(S, chunk_size)

    @T.prim_func
    def fused_chunk_linear_attn_fwd(
        Q: T.Tensor([B, S, H, DK], dtype),
        K: T.Tensor([B, S, H, DK], dtype),
        V: T.Tensor([B, S, H, DV], dtype),
        O: T.Tensor([B, S, H, DV], accum_dtype),
        final_state: T.Tensor([B, H, DK, DV], accum_dtype),
    ):
        with T.Kernel(NV, B * H, threads=128) as (i_v, i_bh):
            i_b = i_bh // H
            i_h = i_bh % H
            q = T.alloc_shared([chunk_size, DK], dtype)
            k = T.alloc_shared([chunk_size, DK], dtype)
            v = T.alloc_shared([chunk_size, BV], dtype)
            h = T.alloc_fragment([DK, BV], accum_dtype)
            h_shared = T.alloc_shared([DK, BV], dtype)
            s = T.alloc_fragment([chunk_size, chunk_size], accum_dtype)
            s_shared = T.alloc_shared([chunk_size, chunk_size], dtype)
            o = T.alloc_fragment([chunk_size, BV], accum_dtype)
            T.annotate_layout({s_shared: tl.layout.make_swizzled_layout(s_shared)})
            T.clear(h)
            for i in T.Pipelined(0, NT, num_stages=1):
                for row, col in T.Parallel(chunk_size, DK):
                    q[row, col] = Q[i_b, i * chunk_size + row, i_h, col] * scale
                T.copy(K[i_b, i * chunk_size : (i + 1) * chunk_size, i_h, :], k)
                T.copy(
                    V[i_b, i * chunk_size : (i + 1) * chunk_size, i_h, i_v * BV : (i_v + 1) * BV], v
                )
                T.gemm(q, k, s, clear_accum=True, transpose_B=True)
                for row, col in T.Parallel(chunk_size, chunk_size):
                    s_shared[row, col] = T.if_then_else(row >= col, s[row, col], 0)
                T.gemm(s_shared, v, o, clear_accum=True)
                T.copy(h, h_shared)
                T.gemm(k, v, h, transpose_A=True)
                T.gemm(q, h_shared, o)
                T.copy(
                    o,
                    O[i_b, i * chunk_size : (i + 1) * chunk_size, i_h, i_v * BV : (i_v + 1) * BV],
                )
            T.copy(h, final_state[i_b, i_h, 0:DK, i_v * BV : (i_v + 1) * BV])

    return fused_chunk_linear_attn_fwd


def ref_program(q, k, v):
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), k.float()) * q.shape[-1] ** -0.5
    return torch.einsum("bhqk,bkhd->bqhd", scores.tril(), v.float())


def main(B=1, S=128, H=2, D=64):
    torch.manual_seed(0)
    q, k, v = (torch.randn(B, S, H, D, device="cuda", dtype=torch.float16) / 4 for _ in range(3))
    o, state = tl_fused_chunk_fwd_kernel(B, S, H, D, D)(q, k, v)
    torch.testing.assert_close(o, ref_program(q, k, v), rtol=2e-2, atol=2e-2)
    expected = torch.einsum("bkhd,bkhe->bhde", k.float(), v.float())
    torch.testing.assert_close(state, expected, rtol=2e-2, atol=2e-2)
    print("Passed all tests!")


if __name__ == "__main__":
    main()
