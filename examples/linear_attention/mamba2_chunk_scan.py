"""Mamba-2, outputs of chunks from scores, states and a skip connection.

y[t] = exp(A_t) C_t . state[c]  +  sum over s <= t in c of (C_t . B_s) exp(A_t - A_s) dt_s x_s
+ D x_t. cb (batch, chunks, groups, chunk, chunk), x and y (batch, tokens, heads, headdim),
C (batch, tokens, groups, dstate), states (batch, chunks, heads, headdim, dstate) float16; dt
and dA_cumsum (batch, heads, chunks, chunk), D (heads,) float32.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64, 64, 2, 1, 32, 32), (1, 256, 128, 4, 2, 48, 64)]


@tilelang.jit(out_idx=[7])
def chunk_scan(
    batch,
    tokens,
    chunk,
    heads,
    groups,
    headdim,
    dstate,
    block_M=64,
    block_N=32,
    block_K=32,
    threads=128,
    num_stages=2,
):
    """Combine what happens within a chunk with what came before it."""
    chunks = tokens // chunk
    dtype, accum_dtype = "float16", "float32"
    p = 1.44269504

    @T.prim_func
    def main(
        cb: T.Tensor((batch, chunks, groups, chunk, chunk), dtype),
        x: T.Tensor((batch, tokens, heads, headdim), dtype),
        dt: T.Tensor((batch, heads, chunks, chunk), accum_dtype),
        dA_cumsum: T.Tensor((batch, heads, chunks, chunk), accum_dtype),
        C: T.Tensor((batch, tokens, groups, dstate), dtype),
        states: T.Tensor((batch, chunks, heads, headdim, dstate), dtype),
        D: T.Tensor((heads,), accum_dtype),
        y: T.Tensor((batch, tokens, heads, headdim), dtype),
    ):
        tiles_n = T.ceildiv(headdim, block_N)
        tiles_m = T.ceildiv(chunk, block_M)
        with T.Kernel(heads, tiles_m * tiles_n, batch * chunks, threads=threads) as (bh, bmn, bbc):
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            cb_shared = T.alloc_shared((block_M, block_K), dtype)
            cb_local = T.alloc_fragment((block_M, block_K), dtype)
            dA_k_shared = T.alloc_shared((block_K,), accum_dtype)
            dA_m = T.alloc_fragment((block_M,), accum_dtype)
            dt_shared = T.alloc_shared((block_K,), accum_dtype)
            x_shared = T.alloc_shared((block_K, block_N), dtype)
            C_shared = T.alloc_shared((block_M, dstate), dtype)
            state_shared = T.alloc_shared((block_N, dstate), dtype)
            skip_shared = T.alloc_shared((block_M, block_N), dtype)

            b, c = bbc // chunks, bbc % chunks
            m, n = bmn // tiles_n * block_M, bmn % tiles_n * block_N
            group = bh // (heads // groups)
            first = c * chunk + m
            T.annotate_layout({x_shared: T.make_swizzled_layout(x_shared)})

            T.copy(dA_cumsum[b, bh, c, m : m + block_M], dA_m)
            T.copy(C[b, first : first + block_M, group, :], C_shared)
            T.copy(states[b, c, bh, n : n + block_N, :], state_shared)
            T.gemm(C_shared, state_shared, acc, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] *= T.exp2(dA_m[i] * p)
            for k in T.Pipelined(T.ceildiv(m + block_M, block_K), num_stages=num_stages):
                T.copy(cb[b, c, group, m : m + block_M, k * block_K : (k + 1) * block_K], cb_shared)
                T.copy(dA_cumsum[b, bh, c, k * block_K : (k + 1) * block_K], dA_k_shared)
                T.copy(dt[b, bh, c, k * block_K : (k + 1) * block_K], dt_shared)
                T.copy(cb_shared, cb_local)
                for i, j in T.Parallel(block_M, block_K):
                    decay = T.exp2((dA_m[i] - dA_k_shared[j]) * p)
                    cb_local[i, j] = T.if_then_else(
                        m + i >= k * block_K + j, cb_local[i, j] * decay * dt_shared[j], 0
                    )
                rows = c * chunk + k * block_K
                T.copy(x[b, rows : rows + block_K, bh, n : n + block_N], x_shared)
                T.gemm(cb_local, x_shared, acc)
            T.copy(x[b, first : first + block_M, bh, n : n + block_N], skip_shared)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] += skip_shared[i, j] * D[bh]
            T.copy(acc, y[b, first : first + block_M, bh, n : n + block_N])

    return main


def check(batch, tokens, chunk, heads, groups, headdim, dstate, **tiles):
    """Compare one size with torch."""
    torch.manual_seed(0)
    chunks, share = tokens // chunk, heads // groups
    cb = torch.randn(batch, chunks, groups, chunk, chunk).half()
    x = torch.randn(batch, tokens, heads, headdim).half()
    dt = torch.rand(batch, heads, chunks, chunk) * 0.1
    dA = (-torch.rand_like(dt) * 0.1).cumsum(-1)
    C = torch.randn(batch, tokens, groups, dstate).half()
    states = torch.randn(batch, chunks, heads, headdim, dstate).div(dstate**0.5).half()
    D = torch.randn(heads)
    kernel = chunk_scan(batch, tokens, chunk, heads, groups, headdim, dstate, **tiles)
    y = kernel(cb, x, dt, dA, C, states, D)
    decay = torch.exp(dA[..., :, None] - dA[..., None, :]).tril() * dt[..., None, :]
    weights = cb.float().repeat_interleave(share, 2).transpose(1, 2) * decay
    wide_x = x.float().view(batch, chunks, chunk, heads, headdim)
    wide_C = C.float().repeat_interleave(share, 2).view(batch, chunks, chunk, heads, dstate)
    expected = torch.einsum("bhcts,bcshp->bcthp", weights, wide_x)
    before = torch.einsum("bcthn,bchpn->bcthp", wide_C, states.float())
    expected += before * torch.exp(dA).permute(0, 2, 3, 1)[..., None] + wide_x * D[:, None]
    torch.testing.assert_close(y.float(), expected.reshape(y.shape), rtol=2e-2, atol=2e-2)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"Mamba-2, outputs of chunks: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
