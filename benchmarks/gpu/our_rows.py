"""Copies, softmax and norms of rows, in bfloat16, computed in float32; rows stay in registers."""

import math

import tile_api as tile
import tile_api.language as T

EPS = 1e-5


@tile.jit(out_idx=[-1])
def copy(rows, columns, block=8192, threads=256):
    """Y = X; `block` elements at a time."""
    across = max(1, block // columns)
    width = min(block, columns)

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "bfloat16"), Y: T.Tensor((rows, columns), "bfloat16")):
        with T.Kernel(columns // width, rows // across, threads=threads) as (bx, by):
            for i, j in T.Parallel(across, width):
                Y[by * across + i, bx * width + j] = X[by * across + i, bx * width + j]

    return main


@tile.jit(out_idx=[-1])
def softmax(rows, columns, block_M=1, threads=256):
    """exp(X - max) / sum, row by row."""

    @T.prim_func
    def main(X: T.Tensor((rows, columns), "bfloat16"), Y: T.Tensor((rows, columns), "bfloat16")):
        with T.Kernel(T.ceildiv(rows, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, columns), "float32")
            highest = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, highest, dim=1)
            for i, j in T.Parallel(block_M, columns):
                x[i, j] = T.exp2((x[i, j] - highest[i]) * math.log2(math.e))
            T.reduce_sum(x, total, dim=1)
            for i in T.Parallel(block_M):
                total[i] = 1.0 / total[i]
            for i, j in T.Parallel(block_M, columns):
                x[i, j] *= total[i]
            T.copy(x, Y[bx * block_M, 0])

    return main


@tile.jit(out_idx=[-1])
def rms_norm(rows, columns, block_M=1, threads=256):
    """X / sqrt(mean(X^2) + eps) * weight."""

    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "bfloat16"),
        weight: T.Tensor((columns,), "bfloat16"),
        Y: T.Tensor((rows, columns), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(rows, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, columns), "float32")
            squares = T.alloc_fragment((block_M, columns), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, columns):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / columns + EPS)
            for i, j in T.Parallel(block_M, columns):
                x[i, j] *= scale[i] * weight[j]
            T.copy(x, Y[bx * block_M, 0])

    return main


@tile.jit(out_idx=[-1])
def layer_norm(rows, columns, block_M=1, threads=256):
    """(X - mean) / sqrt(variance + eps) * weight + bias."""

    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "bfloat16"),
        weight: T.Tensor((columns,), "bfloat16"),
        bias: T.Tensor((columns,), "bfloat16"),
        Y: T.Tensor((rows, columns), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(rows, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, columns), "float32")
            squares = T.alloc_fragment((block_M, columns), "float32")
            mean = T.alloc_fragment((block_M,), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / columns
            for i, j in T.Parallel(block_M, columns):
                x[i, j] -= mean[i]
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / columns + EPS)
            for i, j in T.Parallel(block_M, columns):
                x[i, j] = x[i, j] * scale[i] * weight[j] + bias[j]
            T.copy(x, Y[bx * block_M, 0])

    return main
