"""Mamba-2: outputs of a chunk from scores within it and from the state before it."""

import tilelang
import tilelang.language as T
import torch
from tilelang.profiler import do_bench

p = 1.44269504


@tilelang.jit(out_idx=[6], pass_configs={"tl.disable_warp_specialized": True})
def chunk_scan_fwd(batch, seqlen, chunk, heads, headdim, dstate, block_M=32, block_N=32):
    nchunks = seqlen // chunk

    @T.prim_func
    def main(
        cb: T.Tensor((batch, nchunks, chunk, chunk), "float16"),
        x: T.Tensor((batch, seqlen, heads, headdim), "float16"),
        dt: T.Tensor((batch, heads, nchunks, chunk), "float16"),
        dA_cumsum: T.Tensor((batch, heads, nchunks, chunk), "float16"),
        C: T.Tensor((batch, seqlen, dstate), "float16"),
        prev_states: T.Tensor((batch, nchunks, heads, headdim, dstate), "float16"),
        Output: T.Tensor((batch, seqlen, heads, headdim), "float16"),
    ):
        with T.Kernel(heads, T.ceildiv(chunk, block_M), batch * nchunks, threads=128) as (
            bz,
            m_idx,
            by,
        ):
            acc_o = T.alloc_fragment((block_M, headdim), "float")
            cb_shared = T.alloc_shared((block_M, block_N), "float16")
            cb_local = T.alloc_fragment((block_M, block_N), "float16")
            dA_k = T.alloc_shared((block_N,), "float16")
            dA_m_shared = T.alloc_shared((block_M,), "float16")
            dA_m = T.alloc_fragment((block_M,), "float")
            dt_shared = T.alloc_shared((block_N,), "float16")
            x_shared = T.alloc_shared((block_N, headdim), "float16")
            C_shared = T.alloc_shared((block_M, dstate), "float16")
            state = T.alloc_shared((headdim, dstate), "float16")
            b, c = by // nchunks, by % nchunks
            first = c * chunk + m_idx * block_M

            T.copy(dA_cumsum[b, bz, c, m_idx * block_M : (m_idx + 1) * block_M], dA_m_shared)
            T.copy(dA_m_shared, dA_m)
            T.copy(C[b, first : first + block_M, :], C_shared)
            T.copy(prev_states[b, c, bz, :, :], state)
            T.clear(acc_o)
            T.gemm(C_shared, state, acc_o, transpose_B=True)
            for i, j in T.Parallel(block_M, headdim):
                acc_o[i, j] *= T.exp2(dA_m[i] * p)
            for k in T.Pipelined(T.ceildiv((m_idx + 1) * block_M, block_N), num_stages=2):
                T.copy(
                    cb[
                        b,
                        c,
                        m_idx * block_M : (m_idx + 1) * block_M,
                        k * block_N : (k + 1) * block_N,
                    ],
                    cb_shared,
                )
                T.copy(cb_shared, cb_local)
                T.copy(dA_cumsum[b, bz, c, k * block_N : (k + 1) * block_N], dA_k)
                T.copy(dt[b, bz, c, k * block_N : (k + 1) * block_N], dt_shared)
                for i, j in T.Parallel(block_M, block_N):
                    cb_local[i, j] = T.if_then_else(
                        m_idx * block_M + i >= k * block_N + j,
                        cb_local[i, j]
                        * T.exp2(dA_m[i] * p - dA_k[j].astype("float32") * p)
                        * dt_shared[j],
                        0,
                    )
                T.copy(
                    x[b, c * chunk + k * block_N : c * chunk + (k + 1) * block_N, bz, :], x_shared
                )
                T.gemm(cb_local, x_shared, acc_o)
            T.copy(acc_o, Output[b, first : first + block_M, bz, :])

    return main


def ref_program(cb, x, dt, dA, C, states):
    batch, seqlen, heads, headdim = x.shape
    nchunks, chunk = dA.shape[2:]
    dA, dt = dA.float(), dt.float()
    weights = torch.exp(dA[..., :, None] - dA[..., None, :]).tril() * dt[..., None, :]
    weights = weights * cb.float()[:, None]
    xs = x.float().view(batch, nchunks, chunk, heads, headdim)
    out = torch.einsum("bhcts,bcshp->bcthp", weights, xs)
    Cs = C.float().view(batch, nchunks, chunk, -1)
    before = torch.einsum("bctn,bchpn->bcthp", Cs, states.float())
    return (out + before * torch.exp(dA).permute(0, 2, 3, 1)[..., None]).reshape(x.shape).half()


torch.manual_seed(0)
B, S, CHUNK, H, P, N = 1, 128, 64, 3, 32, 32
half = dict(device="cuda", dtype=torch.float16)
cb = torch.randn(B, S // CHUNK, CHUNK, CHUNK, **half)
x = torch.randn(B, S, H, P, **half)
dt = torch.rand(B, H, S // CHUNK, CHUNK, device="cuda").mul(0.1).half()
dA = (-torch.rand(B, H, S // CHUNK, CHUNK, device="cuda") * 0.1).cumsum(-1).half()
C = torch.randn(B, S, N, **half)
states = torch.randn(B, S // CHUNK, H, P, N, **half)
kernel = chunk_scan_fwd(B, S, CHUNK, H, P, N)
inputs = (cb, x, dt, dA, C, states)
torch.testing.assert_close(kernel(*inputs), ref_program(*inputs), rtol=3e-2, atol=3e-2)
latency = do_bench(lambda: kernel(*inputs), warmup=1, rep=2, return_mode="median")
print(f"chunk scan: ok, {latency:.3f} ms")
