"""RMS norm: Y = X / sqrt(mean(X^2) + eps) * weight, row by row, and with a residual added first.

X, residual and Y (M, N), weight (N,); bfloat16, computed in float32. In eager style: the two
outputs are declared with `T.empty` and returned.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(8, 64), (37, 200)]
EPS = 1e-6


@tilelang.jit
def rms_norm(X, weight, block_M=4):
    """Keep whole rows in shared memory."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.bfloat16)
    weight: T.Tensor((N,), T.bfloat16)
    Y = T.empty((M, N), T.bfloat16)

    with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
        x_shared = T.alloc_shared((block_M, N), T.bfloat16)
        x = T.alloc_fragment((block_M, N), T.float32)
        squares = T.alloc_fragment((block_M, N), T.float32)
        power = T.alloc_fragment((block_M,), T.float32)
        T.copy(X[bx * block_M : (bx + 1) * block_M, :], x_shared)
        T.copy(x_shared, x)
        for i, j in T.Parallel(block_M, N):
            squares[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(squares, power, dim=1)
        for i in T.Parallel(block_M):
            power[i] = T.rsqrt(power[i] / N + EPS)
        for i, j in T.Parallel(block_M, N):
            x[i, j] *= power[i] * weight[j]
        T.copy(x, Y[bx * block_M : (bx + 1) * block_M, :])
    return Y


@tilelang.jit
def fused_add_rms_norm(X, residual, weight, block_N=128):
    """Walk over the columns twice; the sum X + residual comes out as well."""
    M, N = T.const("M, N")
    X: T.Tensor((M, N), T.bfloat16)
    residual: T.Tensor((M, N), T.bfloat16)
    weight: T.Tensor((N,), T.bfloat16)
    total = T.empty((M, N), T.bfloat16)
    Y = T.empty((M, N), T.bfloat16)

    with T.Kernel(M, threads=128) as row:
        x = T.alloc_fragment((block_N,), T.float32)
        squares = T.alloc_fragment((block_N,), T.float32)
        power = T.alloc_fragment((1,), T.float32)
        T.clear(squares)
        for k in T.serial(T.ceildiv(N, block_N)):
            for j in T.Parallel(block_N):
                at = k * block_N + j
                x[j] = X[row, at].astype("float32") + residual[row, at].astype("float32")
                squares[j] += x[j] * x[j]
            T.copy(x, total[row, k * block_N : (k + 1) * block_N])
        T.reduce_sum(squares, power, dim=0)
        for k in T.serial(T.ceildiv(N, block_N)):
            for j in T.Parallel(block_N):
                at = k * block_N + j
                value = X[row, at].astype("float32") + residual[row, at].astype("float32")
                Y[row, at] = value * T.rsqrt(power[0] / N + EPS) * weight[at]
    return total, Y


def check(M, N):
    """Compare both kernels with torch."""
    torch.manual_seed(0)
    x, residual = torch.randn(M, N).bfloat16(), torch.randn(M, N).bfloat16()
    weight = torch.rand(N).bfloat16()

    def expected(wide):
        return wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPS) * weight.float()

    tolerance = {"rtol": 2e-2, "atol": 1e-2}
    torch.testing.assert_close(rms_norm(x, weight).float(), expected(x.float()), **tolerance)
    total, y = fused_add_rms_norm(x, residual, weight)
    torch.testing.assert_close(total, x + residual, **tolerance)
    torch.testing.assert_close(y.float(), expected(x.float() + residual.float()), **tolerance)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"RMS norm, plain and fused with an addition: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
