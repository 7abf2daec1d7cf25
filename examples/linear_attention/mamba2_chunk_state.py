"""Mamba-2, states of chunks: S[c] = sum over t in c of exp(A_end - A_t) dt_t  x_t  B_t^T.

x (batch, tokens, heads, headdim) float16; B (batch, tokens, groups, dstate) float16; dt and
dA_cumsum (batch, heads, chunks, chunk) float32; S (batch, chunks, heads, headdim, dstate).
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64, 64, 2, 1, 32, 32), (1, 256, 128, 4, 2, 64, 48)]


@tilelang.jit(out_idx=[4])
def chunk_state(
    batch,
    tokens,
    chunk,
    heads,
    groups,
    headdim,
    dstate,
    block_M=32,
    block_N=32,
    block_K=64,
    threads=128,
    num_stages=2,
):
    """Sum the outer products of each chunk, weighted by their decay until its end."""
    chunks = tokens // chunk
    dtype, accum_dtype = "float16", "float32"

    @T.prim_func
    def main(
        B: T.Tensor((batch, tokens, groups, dstate), dtype),
        x: T.Tensor((batch, tokens, heads, headdim), dtype),
        dt: T.Tensor((batch, heads, chunks, chunk), accum_dtype),
        dA_cumsum: T.Tensor((batch, heads, chunks, chunk), accum_dtype),
        S: T.Tensor((batch, chunks, heads, headdim, dstate), accum_dtype),
    ):
        tiles_n = T.ceildiv(dstate, block_N)
        tiles_m = T.ceildiv(headdim, block_M)
        with T.Kernel(heads, tiles_m * tiles_n, batch * chunks, threads=threads) as (bh, bmn, bbc):
            x_shared = T.alloc_shared((block_K, block_M), dtype)
            x_local = T.alloc_fragment((block_K, block_M), dtype)
            xt_local = T.alloc_fragment((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            dt_shared = T.alloc_shared((block_K,), accum_dtype)
            dA_shared = T.alloc_shared((block_K,), accum_dtype)
            weight = T.alloc_fragment((block_K,), accum_dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)

            b, c = bbc // chunks, bbc % chunks
            m, n = bmn // tiles_n * block_M, bmn % tiles_n * block_N
            group = bh // (heads // groups)
            dA_end = dA_cumsum[b, bh, c, chunk - 1]
            T.clear(acc)
            for k in T.Pipelined(chunk // block_K, num_stages=num_stages):
                first = c * chunk + k * block_K
                T.copy(x[b, first : first + block_K, bh, m : m + block_M], x_shared)
                T.copy(B[b, first : first + block_K, group, n : n + block_N], B_shared)
                T.copy(dt[b, bh, c, k * block_K : (k + 1) * block_K], dt_shared)
                T.copy(dA_cumsum[b, bh, c, k * block_K : (k + 1) * block_K], dA_shared)
                for i in T.Parallel(block_K):
                    weight[i] = T.exp(dA_end - dA_shared[i]) * dt_shared[i]
                T.copy(x_shared, x_local)
                for i, j in T.Parallel(block_M, block_K):
                    xt_local[i, j] = x_local[j, i] * weight[j]
                T.gemm(xt_local, B_shared, acc)
            T.copy(acc, S[b, c, bh, m : m + block_M, n : n + block_N])

    return main


def check(batch, tokens, chunk, heads, groups, headdim, dstate, **tiles):
    """Compare one size with torch."""
    torch.manual_seed(0)
    B = torch.randn(batch, tokens, groups, dstate).half()
    x = torch.randn(batch, tokens, heads, headdim).half()
    dt = torch.rand(batch, heads, tokens // chunk, chunk)
    dA = (-torch.rand_like(dt) * 0.1).cumsum(-1)
    kernel = chunk_state(batch, tokens, chunk, heads, groups, headdim, dstate, **tiles)
    states = kernel(B, x, dt, dA)
    wide_B = B.float().repeat_interleave(heads // groups, 2)
    wide_B = wide_B.view(batch, -1, chunk, heads, dstate)
    wide_x = x.float().view(batch, -1, chunk, heads, headdim)
    weight = torch.exp(dA[..., -1:] - dA) * dt
    expected = torch.einsum("bcthn,bhct,bcthp->bchpn", wide_B, weight, wide_x)
    torch.testing.assert_close(states, expected, rtol=1e-2, atol=3e-2)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"Mamba-2, states of chunks: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
