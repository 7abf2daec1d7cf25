"""Flash attention, backward: dQ, dK and dV from dO, with the weights computed anew.

Q, K, V, O and dO (heads, tokens, dim); the results alike, float32; lse and delta (heads, tokens). A
first kernel computes delta = rowsum(O * dO). In the second, a block owns some keys, sums their
dK and dV in registers, and adds to dQ atomically.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64, 32, False), (2, 100, 32, True)]


@tilelang.jit(out_idx=[2])
def backward_delta(heads, tokens, dim, block=64):
    """Return sum(O * dO) for each query."""
    shape = (heads, tokens, dim)

    @T.prim_func
    def main(
        O: T.Tensor(shape, "float32"),
        dO: T.Tensor(shape, "float32"),
        delta: T.Tensor((heads, tokens), "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block), heads, threads=128) as (bx, by):
            o = T.alloc_fragment((block, dim), "float32")
            do = T.alloc_fragment((block, dim), "float32")
            sums = T.alloc_fragment((block,), "float32")
            T.copy(O[by, bx * block : (bx + 1) * block, :], o)
            T.copy(dO[by, bx * block : (bx + 1) * block, :], do)
            for i, j in T.Parallel(block, dim):
                o[i, j] *= do[i, j]
            T.reduce_sum(o, sums, dim=1)
            T.copy(sums, delta[by, bx * block : (bx + 1) * block])

    return main


@tilelang.jit
def backward(heads, tokens, dim, causal, dtype, block_M=32, block_N=32, threads=128, num_stages=2):
    """Fill dK and dV, and add to dQ, which must be zero before."""
    scale = 1 / math.sqrt(dim)
    shape = (heads, tokens, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        dO: T.Tensor(shape, dtype),
        lse: T.Tensor((heads, tokens), "float32"),
        delta: T.Tensor((heads, tokens), "float32"),
        dQ: T.Tensor(shape, "float32"),
        dK: T.Tensor(shape, "float32"),
        dV: T.Tensor(shape, "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block_N), heads, threads=threads) as (bx, by):
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            dO_shared = T.alloc_shared((block_M, dim), dtype)
            lse_shared = T.alloc_shared((block_M,), "float32")
            delta_shared = T.alloc_shared((block_M,), "float32")
            ds_shared = T.alloc_shared((block_N, block_M), dtype)
            weights = T.alloc_fragment((block_N, block_M), "float32")
            d_weights = T.alloc_fragment((block_N, block_M), "float32")
            factors = T.alloc_fragment((block_N, block_M), dtype)
            d_factors = T.alloc_fragment((block_N, block_M), dtype)
            dq = T.alloc_fragment((block_M, dim), "float32")
            dk = T.alloc_fragment((block_N, dim), "float32")
            dv = T.alloc_fragment((block_N, dim), "float32")

            T.copy(K[by, bx * block_N : (bx + 1) * block_N, :], K_shared)
            T.copy(V[by, bx * block_N : (bx + 1) * block_N, :], V_shared)
            T.clear(dk)
            T.clear(dv)
            first = bx * block_N // block_M if causal else 0
            for m in T.Pipelined(first, T.ceildiv(tokens, block_M), num_stages=num_stages):
                T.copy(Q[by, m * block_M : (m + 1) * block_M, :], Q_shared)
                T.copy(dO[by, m * block_M : (m + 1) * block_M, :], dO_shared)
                T.copy(lse[by, m * block_M : (m + 1) * block_M], lse_shared)
                T.copy(delta[by, m * block_M : (m + 1) * block_M], delta_shared)
                T.gemm(K_shared, Q_shared, weights, transpose_B=True, clear_accum=True)
                T.gemm(V_shared, dO_shared, d_weights, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_N, block_M):
                    weights[i, j] = T.exp(weights[i, j] * scale - lse_shared[j])
                for i, j in T.Parallel(block_N, block_M):
                    key, query = bx * block_N + i, m * block_M + j
                    seen = query < tokens and (key <= query if causal else key < tokens)
                    weights[i, j] = T.if_then_else(seen, weights[i, j], 0)
                T.copy(weights, factors)
                T.gemm(factors, dO_shared, dv)
                for i, j in T.Parallel(block_N, block_M):
                    d_factors[i, j] = weights[i, j] * (d_weights[i, j] - delta_shared[j]) * scale
                T.copy(d_factors, ds_shared)
                T.gemm(ds_shared, K_shared, dq, transpose_A=True, clear_accum=True)
                T.gemm(d_factors, Q_shared, dk)
                T.atomic_add(dQ[by, m * block_M : (m + 1) * block_M, :], dq)
            T.copy(dk, dK[by, bx * block_N : (bx + 1) * block_N, :])
            T.copy(dv, dV[by, bx * block_N : (bx + 1) * block_N, :])

    return main


def check(heads, tokens, dim, causal, dtype="float32", tolerance=1e-3, **tiles):
    """Compare one size with torch's gradients."""
    torch.manual_seed(0)
    low = getattr(torch, dtype)
    q, k, v, do = (torch.randn(heads, tokens, dim).to(low).float() for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_()
    scores = q @ k.transpose(1, 2) / math.sqrt(dim)
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -math.inf)
    o = scores.softmax(-1) @ v
    o.backward(do)
    lse = scores.logsumexp(-1).detach()
    delta = backward_delta(heads, tokens, dim)(o.detach(), do)
    dq, dk, dv = torch.zeros_like(do), torch.full_like(do, math.nan), torch.full_like(do, math.nan)
    factors = (x.detach().to(low) for x in (q, k, v, do))
    kernel = backward(heads, tokens, dim, causal, dtype, **tiles)
    kernel(*factors, lse, delta, dq, dk, dv)
    for found, input in ((dq, q), (dk, k), (dv, v)):
        torch.testing.assert_close(found, input.grad, rtol=tolerance, atol=tolerance / 10)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"flash attention, backward: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
