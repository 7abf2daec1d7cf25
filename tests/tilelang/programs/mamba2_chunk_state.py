"""Mamba-2: the state that each chunk adds, B^T (decay dt x)."""

import argparse

import tilelang
import tilelang.language as T
import torch


def chunk_state_triton_like(B, x, dt, dA_cumsum):
    batch, seqlen, nheads, headdim = x.shape
    nchunks, chunk_size = dt.shape[2:]
    B = B.float().repeat_interleave(nheads // B.shape[2], dim=2)
    x = x.float().view(batch, nchunks, chunk_size, nheads, headdim)
    B = B.view(batch, nchunks, chunk_size, nheads, -1)
    decay = torch.exp(dA_cumsum[..., -1:] - dA_cumsum)
    return torch.einsum("bclhn,bhcl,bhcl,bclhp->bchpn", B, decay, dt, x)


@tilelang.jit(out_idx=[4])
def chunk_state_fwd(
    batch, seqlen, chunk_size, ngroups, nheads, headdim, dstate,
    block_M=32, block_N=32, block_K=32, num_stages=2, threads=128,
):  # fmt: skip
    dtype, accum_dtype = T.float16, T.float32
    nchunks = T.ceildiv(seqlen, chunk_size)
    p = 1.44269504

    @T.prim_func
    def main(
        B: T.Tensor((batch, seqlen, ngroups, dstate), dtype),
        x: T.Tensor((batch, seqlen, nheads, headdim), dtype),
        dt: T.Tensor((batch, nheads, nchunks, chunk_size), accum_dtype),
        dA_cumsum: T.Tensor((batch, nheads, nchunks, chunk_size), accum_dtype),
        Output: T.Tensor((batch, nchunks, nheads, headdim, dstate), dtype),
    ):
        with T.Kernel(
            nheads,
            T.ceildiv(headdim, block_M) * T.ceildiv(dstate, block_N),
            batch * nchunks,
            threads=threads,
        ) as (bz, bx, by):
            x_shared = T.alloc_shared((block_K, block_M), dtype)
            x_local = T.alloc_fragment((block_K, block_M), dtype)
            xt_local = T.alloc_fragment((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            dt_shared = T.alloc_shared((block_K,), accum_dtype)
            dA_shared = T.alloc_shared((block_K,), accum_dtype)
            scale = T.alloc_fragment((block_K,), accum_dtype)
            acc_o = T.alloc_fragment((block_M, block_N), accum_dtype)
            acc_o_shared = T.alloc_shared((block_M, block_N), dtype)

            batch_idx = by % batch
            chunk_idx = by // batch
            m_idx = bx // T.ceildiv(dstate, block_N)
            n_idx = bx % T.ceildiv(dstate, block_N)
            last = dA_cumsum[batch_idx, bz, chunk_idx, chunk_size - 1]
            T.clear(acc_o)
            for k in T.Pipelined(T.ceildiv(chunk_size, block_K), num_stages=num_stages):
                row = chunk_idx * chunk_size + k * block_K
                T.copy(
                    x[batch_idx, row : row + block_K, bz, m_idx * block_M : (m_idx + 1) * block_M],
                    x_shared,
                )
                T.copy(
                    dA_cumsum[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K], dA_shared
                )
                T.copy(dt[batch_idx, bz, chunk_idx, k * block_K : (k + 1) * block_K], dt_shared)
                for i in T.Parallel(block_K):
                    scale[i] = T.exp2(last * p - dA_shared[i] * p) * dt_shared[i]
                T.copy(x_shared, x_local)
                for i, j in T.Parallel(block_M, block_K):
                    xt_local[i, j] = x_local[j, i] * scale[j]
                T.copy(
                    B[
                        batch_idx,
                        row : row + block_K,
                        bz // (nheads // ngroups),
                        n_idx * block_N : (n_idx + 1) * block_N,
                    ],
                    B_shared,
                )
                T.gemm(xt_local, B_shared, acc_o)
            T.copy(acc_o, acc_o_shared)
            T.copy(
                acc_o_shared,
                Output[
                    batch_idx,
                    chunk_idx,
                    bz,
                    m_idx * block_M : (m_idx + 1) * block_M,
                    n_idx * block_N : (n_idx + 1) * block_N,
                ],
            )

    return main


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--seq_len", type=int, default=256)
    parser.add_argument("--chunk_size", type=int, default=64)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--dstate", type=int, default=64)
    args = parser.parse_args()
    sizes = args.batch, args.seq_len, args.chunk_size, 1, args.heads, args.dim, args.dstate
    kernel = chunk_state_fwd(*sizes)
    nchunks = args.seq_len // args.chunk_size
    torch.manual_seed(0)
    B = torch.randn(args.batch, args.seq_len, 1, args.dstate, device="cuda").half()
    x = torch.randn(args.batch, args.seq_len, args.heads, args.dim, device="cuda").half()
    dt = torch.rand(args.batch, args.heads, nchunks, args.chunk_size, device="cuda") * 0.1
    dA = (-torch.rand_like(dt) * 0.1).cumsum(-1)
    expected = chunk_state_triton_like(B, x, dt, dA)
    torch.testing.assert_close(kernel(B, x, dt, dA).float(), expected, rtol=2e-2, atol=2e-2)
    print("All checks pass.")
