"""Flash attention, backward: tensors are (heads, tokens, dim), whole blocks of tokens.

A block owns some keys, sums their dK and dV in registers, and adds to dQ atomically.
"""

import math

import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[2])
def delta(heads, tokens, dim, block=64, threads=128):
    """Return sum(O * dO) for each query."""
    shape = (heads, tokens, dim)

    @T.prim_func
    def main(
        O: T.Tensor(shape, "float16"),
        dO: T.Tensor(shape, "float16"),
        sums: T.Tensor((heads, tokens), "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block), heads, threads=threads) as (bx, by):
            products = T.alloc_fragment((block, dim), "float32")
            of_rows = T.alloc_fragment((block,), "float32")
            for i, j in T.Parallel(block, dim):
                o, do = O[by, bx * block + i, j], dO[by, bx * block + i, j]
                products[i, j] = o.astype("float32") * do.astype("float32")
            T.reduce_sum(products, of_rows, dim=1)
            T.copy(of_rows, sums[by, bx * block : (bx + 1) * block])

    return main


@tile.jit
def backward(
    heads, tokens, dim, causal, block_M=64, block_N=128, num_stages=2, threads=256, panel=0
):
    """Fill dK and dV, and add to dQ, which must be zero before; `lse` is to base 2."""
    scale = 1 / math.sqrt(dim)
    scale2 = scale * math.log2(math.e)
    shape = (heads, tokens, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        dO: T.Tensor(shape, "float16"),
        lse: T.Tensor((heads, tokens), "float32"),
        delta: T.Tensor((heads, tokens), "float32"),
        dQ: T.Tensor(shape, "float32"),
        dK: T.Tensor(shape, "float16"),
        dV: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(heads, T.ceildiv(tokens, block_N), threads=threads) as (by, bx):
            K_shared = T.alloc_shared((block_N, dim), "float16")
            V_shared = T.alloc_shared((block_N, dim), "float16")
            Q_shared = T.alloc_shared((block_M, dim), "float16")
            dO_shared = T.alloc_shared((block_M, dim), "float16")
            lse_shared = T.alloc_shared((block_M,), "float32")
            delta_shared = T.alloc_shared((block_M,), "float32")
            ds_shared = T.alloc_shared((block_N, block_M), "float16")
            weights = T.alloc_fragment((block_N, block_M), "float32")
            d_weights = T.alloc_fragment((block_N, block_M), "float32")
            factors = T.alloc_fragment((block_N, block_M), "float16")
            d_factors = T.alloc_fragment((block_N, block_M), "float16")
            dq = T.alloc_fragment((block_M, dim), "float32")
            dk = T.alloc_fragment((block_N, dim), "float32")
            dv = T.alloc_fragment((block_N, dim), "float32")
            if panel:
                T.use_swizzle(panel)

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
                    weights[i, j] = T.exp2(weights[i, j] * scale2 - lse_shared[j])
                if causal:
                    for i, j in T.Parallel(block_N, block_M):
                        seen = bx * block_N + i <= m * block_M + j
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
