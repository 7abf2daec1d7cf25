"""Batched GEMM with a bias and an activation: C[b] = gelu(A[b] @ B[b] + bias).

A (batch, M, K), B (batch, K, N); bias (N,), C (batch, M, N) float32. The batch is the third
grid dimension, and the epilogue works on the sums while they are still in registers.
"""

import math

import numpy as np
import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [("relu", 2, 64, 64, 32), ("gelu", 3, 50, 90, 70), (None, 1, 1, 5, 7)]


@tilelang.jit(out_idx=[-1])
def batched_matmul(
    activation, batch, M, N, K, dtype, block_M=64, block_N=64, block_K=32, threads=128, num_stages=2
):
    """Multiply `batch` pairs of matrices, add the bias, and apply the activation."""

    def activate(x):
        if activation == "relu":
            return T.max(x, 0)
        if activation == "gelu":
            return 0.5 * x * (1 + T.erf(x * math.sqrt(0.5)))
        return x

    @T.prim_func
    def main(
        A: T.Tensor((batch, M, K), dtype),
        B: T.Tensor((batch, K, N), dtype),
        bias: T.Tensor((N,), "float32"),
        C: T.Tensor((batch, M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), batch, threads=threads) as (
            bx,
            by,
            bz,
        ):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            bias_local = T.alloc_fragment((block_N,), "float32")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(bias[bx * block_N : (bx + 1) * block_N], bias_local)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[bz, by * block_M, k * block_K], A_shared)
                T.copy(B[bz, k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = activate(C_local[i, j] + bias_local[j])
            T.copy(C_local, C[bz, by * block_M, bx * block_N])

    return main


def check(activation, batch, M, N, K, dtype="float32", **tiles):
    """Compare one size with torch."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((batch, M, K), "float32").astype(dtype)
    b = rng.standard_normal((batch, K, N), "float32").astype(dtype)
    bias = rng.standard_normal(N, "float32")
    c = batched_matmul(activation, batch, M, N, K, dtype, **tiles)(a, b, bias)
    known = {"relu": torch.relu, "gelu": torch.nn.functional.gelu, None: lambda x: x}[activation]
    expected = known(torch.from_numpy(a.astype("float32") @ b.astype("float32") + bias)).numpy()
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"batched GEMM with epilogues: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
