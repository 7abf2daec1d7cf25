"""Flash attention, forward: tensors are (batch, tokens, heads, dim), whole blocks of tokens."""

import math

import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[3, 4])
def attention(
    batch, tokens, heads, dim, causal,
    block_M=128, block_N=128, num_stages=2, threads=256, is_longest_first=False, panel=0,
):  # fmt: skip
    """O = softmax(Q K^T / sqrt(dim)) V, and the logarithm to base 2 of the sums.

    With `is_longest_first` the queries that see most keys come first, so that few
    multiprocessors are left alone with a long row at the end of a causal launch.
    """
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (batch, tokens, heads, dim)
    blocks = T.ceildiv(tokens, block_M)
    has_tail = tokens % block_N != 0

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        O: T.Tensor(shape, "float16"),
        lse: T.Tensor((batch, heads, tokens), "float32"),
    ):
        with T.Kernel(heads, blocks, batch, threads=threads) as (by, place, bz):
            Q_shared = T.alloc_shared((block_M, dim), "float16")
            K_shared = T.alloc_shared((block_N, dim), "float16")
            V_shared = T.alloc_shared((block_N, dim), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), "float16")
            acc = T.alloc_fragment((block_M, dim), "float32")
            highest = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            rescale = T.alloc_fragment((block_M,), "float32")
            row_sum = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            if panel:
                T.use_swizzle(panel)

            bx = blocks - 1 - place if is_longest_first else place
            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(highest, -T.infinity("float32"))
            steps = T.ceildiv(tokens, block_N)
            reach = T.min(steps, T.ceildiv((bx + 1) * block_M, block_N)) if causal else steps
            for k in T.Pipelined(reach, num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
                if causal or has_tail:
                    for i, j in T.Parallel(block_M, block_N):
                        query, key = bx * block_M + i, k * block_N + j
                        visible = query >= key if causal else key < tokens
                        scores[i, j] = T.if_then_else(visible, 0, -T.infinity("float32"))
                else:
                    T.clear(scores)
                T.gemm(
                    Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow
                )
                T.copy(highest, before)
                T.reduce_max(scores, highest, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    rescale[i] = T.exp2(before[i] * scale - highest[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2(scores[i, j] * scale - highest[i] * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    acc[i, j] *= rescale[i]
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            for i in T.Parallel(block_M):
                rescale[i] = 1 / total[i]
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] *= rescale[i]
            T.copy(acc, O[bz, bx * block_M : (bx + 1) * block_M, by, :])
            for i in T.Parallel(block_M):
                total[i] = T.log2(total[i]) + highest[i] * scale
            T.copy(total, lse[bz, by, bx * block_M : (bx + 1) * block_M])

    return main
