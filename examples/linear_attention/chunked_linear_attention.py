"""Causal linear attention with many blocks: O[t] = sum over s <= t of (q_t . k_s) v_s.

Q, K (batch, tokens, heads, dim_k), V and O (batch, tokens, heads, dim_v), float16. Blocks split
the dimensions of keys and of values; those that share an output add to it atomically, so O is
float32 and must be zero before. The final states (batch, heads, dim_k, dim_v) come out too.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64, 1, 32, 32), (2, 128, 2, 64, 96)]


@tilelang.jit
def linear_attention(batch, tokens, heads, dim_k, dim_v, block_K=32, block_V=32, chunk=64):
    """Attend without a softmax; each block keeps a piece of the state in registers."""
    splits_k, splits_v = dim_k // block_K, dim_v // block_V
    dtype, accum_dtype = "float16", "float32"

    @T.prim_func
    def main(
        Q: T.Tensor((batch, tokens, heads, dim_k), dtype),
        K: T.Tensor((batch, tokens, heads, dim_k), dtype),
        V: T.Tensor((batch, tokens, heads, dim_v), dtype),
        O: T.Tensor((batch, tokens, heads, dim_v), accum_dtype),
        states: T.Tensor((batch, heads, dim_k, dim_v), accum_dtype),
    ):
        with T.Kernel(splits_v, splits_k, batch * heads, threads=128) as (bv, bk, bbh):
            b, h = bbh // heads, bbh % heads
            Q_shared = T.alloc_shared((chunk, block_K), dtype)
            K_shared = T.alloc_shared((chunk, block_K), dtype)
            V_shared = T.alloc_shared((chunk, block_V), dtype)
            scores = T.alloc_fragment((chunk, chunk), accum_dtype)
            scores_shared = T.alloc_shared((chunk, chunk), dtype)
            state = T.alloc_fragment((block_K, block_V), accum_dtype)
            state_shared = T.alloc_shared((block_K, block_V), dtype)
            o = T.alloc_fragment((chunk, block_V), accum_dtype)
            o_shared = T.alloc_shared((chunk, block_V), accum_dtype)

            T.annotate_layout({o_shared: T.make_swizzled_layout(o_shared)})
            T.use_swizzle(10)
            T.clear(state)
            for c in T.Pipelined(tokens // chunk, num_stages=2):
                rows = c * chunk
                T.copy(Q[b, rows : rows + chunk, h, bk * block_K : (bk + 1) * block_K], Q_shared)
                T.copy(K[b, rows : rows + chunk, h, bk * block_K : (bk + 1) * block_K], K_shared)
                T.copy(V[b, rows : rows + chunk, h, bv * block_V : (bv + 1) * block_V], V_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(chunk, chunk):
                    scores_shared[i, j] = T.if_then_else(i >= j, scores[i, j], 0)
                T.gemm(scores_shared, V_shared, o, clear_accum=True)
                T.copy(state, state_shared)
                T.gemm(Q_shared, state_shared, o)
                T.gemm(K_shared, V_shared, state, transpose_A=True)
                T.copy(o, o_shared)
                T.atomic_add(
                    O[b, rows : rows + chunk, h, bv * block_V : (bv + 1) * block_V], o_shared
                )
            T.copy(
                state,
                states[b, h, bk * block_K : (bk + 1) * block_K, bv * block_V : (bv + 1) * block_V],
            )

    return main


def check(batch, tokens, heads, dim_k, dim_v):
    """Compare one size with torch."""
    torch.manual_seed(0)
    q, k = (torch.randn(batch, tokens, heads, dim_k).div(dim_k**0.5).half() for _ in range(2))
    v = torch.randn(batch, tokens, heads, dim_v).half()
    o = torch.zeros(batch, tokens, heads, dim_v)
    states = torch.full((batch, heads, dim_k, dim_v), float("nan"))
    linear_attention(batch, tokens, heads, dim_k, dim_v)(q, k, v, o, states)
    q, k, v = q.float(), k.float(), v.float()
    scores = torch.einsum("bthd,bshd->bhts", q, k).tril()
    torch.testing.assert_close(o, torch.einsum("bhts,bshd->bthd", scores, v), rtol=1e-2, atol=2e-2)
    torch.testing.assert_close(states, torch.einsum("bthk,bthv->bhkv", k, v), rtol=1e-2, atol=1e-2)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"chunked linear attention: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
