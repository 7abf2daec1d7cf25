"""The kernels that are measured: developer tier, as written for a GPU."""

from __future__ import annotations

import math

import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[-1])
def matmul(
    M, N, K, block_M, block_N, block_K, dtype, out_dtype, accum, trans_A=False, trans_B=False,
    threads=128, stages=3,
):  # fmt: skip
    """C = op(A) @ op(B)."""
    shape_A = (K, M) if trans_A else (M, K)
    shape_B = (N, K) if trans_B else (K, N)
    tile_A = (block_K, block_M) if trans_A else (block_M, block_K)
    tile_B = (block_N, block_K) if trans_B else (block_K, block_N)

    @T.prim_func
    def gemm(
        A: T.Tensor(shape_A, dtype),
        B: T.Tensor(shape_B, dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(tile_A, dtype)
            B_shared = T.alloc_shared(tile_B, dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                if trans_A:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, trans_A, trans_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


@tile.jit(out_idx=[-1])
def attention(heads, tokens, dim, dtype, block_M=128, block_N=128, causal=False, threads=128):
    """softmax(Q K^T / sqrt(dim)) V for each head; tensors are (1, heads, tokens, dim)."""
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (1, heads, tokens, dim)

    @T.prim_func
    def flash(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Output: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(tokens, block_M), heads, 1, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), "float32")
            acc_s_cast = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), "float32")
            scores_max = T.alloc_fragment((block_M,), "float32")
            scores_max_prev = T.alloc_fragment((block_M,), "float32")
            scores_scale = T.alloc_fragment((block_M,), "float32")
            scores_sum = T.alloc_fragment((block_M,), "float32")
            logsum = T.alloc_fragment((block_M,), "float32")

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity("float32"))
            steps = T.ceildiv(tokens, block_N)
            reach = T.min(steps, T.ceildiv((bx + 1) * block_M, block_N)) if causal else steps
            for k in T.Pipelined(reach, num_stages=2):
                T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(
                            bx * block_M + i >= k * block_N + j, 0, -T.infinity("float32")
                        )
                else:
                    T.clear(acc_s)
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True)
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return flash


def rows_of_a_block(columns):
    """Return how many rows make a block of 16384 elements, but 8 at least."""
    return max(8, 2**14 // columns)


@tile.jit(out_idx=[-1])
def softmax(rows, columns, block_M=None):
    """Row-wise softmax, one pass over memory."""
    block_M = block_M or rows_of_a_block(columns)

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(rows, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, columns), "float32")
            highest = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, highest, dim=1)
            for i, j in T.Parallel(block_M, columns):
                x[i, j] = T.exp2((x[i, j] - highest[i]) * 1.4426950408889634)
            T.reduce_sum(x, total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = 1.0 / total[i]
            for i, j in T.Parallel(block_M, columns):
                Y[bx * block_M + i, j] = x[i, j] * total[i]

    return main


@tile.jit(out_idx=[-1])
def rms_norm(rows, columns, block_M=None, eps=1e-5):
    """X / sqrt(mean(x^2) + eps) * weight."""
    block_M = block_M or rows_of_a_block(columns)

    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "float32"),
        weight: T.Tensor((columns,), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, columns), "float32")
            squares = T.alloc_fragment((block_M, columns), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, columns):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / columns + eps)
            for i, j in T.Parallel(block_M, columns):
                Y[bx * block_M + i, j] = x[i, j] * scale[i] * weight[j]

    return main


@tile.jit(out_idx=[-1])
def layer_norm(rows, columns, block_M=None, eps=1e-5):
    """(x - mean) / sqrt(variance + eps) * weight + bias."""
    block_M = block_M or rows_of_a_block(columns)

    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "float32"),
        weight: T.Tensor((columns,), "float32"),
        bias: T.Tensor((columns,), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, columns), "float32")
            squares = T.alloc_fragment((block_M, columns), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / columns
            for i, j in T.Parallel(block_M, columns):
                squares[i, j] = (x[i, j] - mean[i]) * (x[i, j] - mean[i])
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / columns + eps)
            for i, j in T.Parallel(block_M, columns):
                Y[bx * block_M + i, j] = (x[i, j] - mean[i]) * scale[i] * weight[j] + bias[j]

    return main


@tile.jit
def copy(n, block=8192):
    """C = A, into a given tensor."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=256) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i]

    return main


@tile.jit
def add(n, block=8192):
    """C = A + B, elementwise, into a given tensor."""

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")
    ):
        with T.Kernel(T.ceildiv(n, block), threads=256) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return main


@tile.jit
def gelu(n, block=8192):
    """X Phi(x), exactly (with erf), into a given tensor."""

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=256) as bx:
            for i in T.Parallel(block):
                x = A[bx * block + i]
                C[bx * block + i] = 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))

    return main
