"""Layer norm with weight and bias, forward and backward.

X, Y, dY, dX (M, N), weight, bias and their gradients (N,); mean and inverse deviation (M,);
float32. The gradients of weight and bias are added up over blocks atomically.
"""

import math

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 64), (50, 130)]
EPS = 1e-5


@tilelang.jit(out_idx=[3, 4, 5])
def layer_norm(M, N, block_M=8):
    """Normalise rows, block_M at a time; return Y, mean and inverse deviation."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        weight: T.Tensor((N,), "float32"),
        bias: T.Tensor((N,), "float32"),
        Y: T.Tensor((M, N), "float32"),
        mean: T.Tensor((M,), "float32"),
        rstd: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            squares = T.alloc_fragment((block_M, N), "float32")
            centre = T.alloc_fragment((block_M,), "float32")
            spread = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, centre, dim=1)
            for i in T.Parallel(block_M):
                centre[i] /= N
            for i, j in T.Parallel(block_M, N):
                x[i, j] -= centre[i]
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, spread, dim=1)
            for i in T.Parallel(block_M):
                spread[i] = T.rsqrt(spread[i] / N + EPS)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * spread[i] * weight[j] + bias[j]
            T.copy(x, Y[bx * block_M, 0])
            T.copy(centre, mean[bx * block_M])
            T.copy(spread, rstd[bx * block_M])

    return main


@tilelang.jit
def layer_norm_backward(M, N, block_M=8):
    """Fill dX; add to the gradients of weight and bias, which must be zero before."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        dY: T.Tensor((M, N), "float32"),
        weight: T.Tensor((N,), "float32"),
        mean: T.Tensor((M,), "float32"),
        rstd: T.Tensor((M,), "float32"),
        dX: T.Tensor((M, N), "float32"),
        dweight: T.Tensor((N,), "float32"),
        dbias: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            xhat = T.alloc_shared((block_M, N), "float32")
            dy = T.alloc_shared((block_M, N), "float32")
            products = T.alloc_fragment((block_M, N), "float32")
            scaled = T.alloc_fragment((block_M, N), "float32")
            along = T.alloc_fragment((block_M,), "float32")
            offset = T.alloc_fragment((block_M,), "float32")
            columns = T.alloc_fragment((N,), "float32")
            T.copy(X[bx * block_M, 0], xhat)
            T.copy(dY[bx * block_M, 0], dy)
            for i, j in T.Parallel(block_M, N):
                row = bx * block_M + i
                xhat[i, j] = (xhat[i, j] - mean[row]) * rstd[row]
            for i, j in T.Parallel(block_M, N):
                products[i, j] = dy[i, j] * xhat[i, j]
            T.reduce_sum(products, columns, dim=0)
            T.atomic_add(dweight[0:N], columns)
            for i, j in T.Parallel(block_M, N):
                products[i, j] *= weight[j]
                scaled[i, j] = dy[i, j] * weight[j]
            T.reduce_sum(products, along, dim=1)
            T.reduce_sum(scaled, offset, dim=1)
            for i, j in T.Parallel(block_M, N):
                row = bx * block_M + i
                dX[row, j] = (scaled[i, j] - (offset[i] + xhat[i, j] * along[i]) / N) * rstd[row]
            T.reduce_sum(dy, columns, dim=0)
            T.atomic_add(dbias[0:N], columns)

    return main


def check(M, N):
    """Compare one size with torch and its gradients."""
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(*s, requires_grad=True) for s in ((M, N), (N,), (N,)))
    expected = torch.nn.functional.layer_norm(x, (N,), weight, bias, EPS)
    dy = torch.randn(M, N)
    expected.backward(dy)
    inputs = [t.detach() for t in (x, weight, bias)]
    y, mean, rstd = layer_norm(M, N)(*inputs)
    torch.testing.assert_close(y, expected.detach(), rtol=1e-4, atol=1e-4)
    dx, dweight, dbias = torch.full((M, N), math.nan), torch.zeros(N), torch.zeros(N)
    layer_norm_backward(M, N)(inputs[0], dy, inputs[1], mean, rstd, dx, dweight, dbias)
    for found, input in ((dx, x), (dweight, weight), (dbias, bias)):
        torch.testing.assert_close(found, input.grad, rtol=1e-3, atol=1e-4)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"layer norm, forward and backward: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
