"""W8A8: C = (A @ B^T) * row scale * column scale, INT8 operands and an INT32 accumulator.

A (M, K) int8; B (N, K) int8; scale_A (M,), scale_B (N,) float32; C (M, N) float16. Also shown:
how A and its scales come out of a float matrix, row by row.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 64, 64), (50, 33, 130)]


@tilelang.jit(out_idx=[1, 2])
def quantise_rows(M, K, block_M=8):
    """Return round(X / scale) as int8 and scale = max|row| / 127."""

    @T.prim_func
    def main(
        X: T.Tensor((M, K), "float32"),
        Q: T.Tensor((M, K), "int8"),
        scales: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x_local = T.alloc_fragment((block_M, K), "float32")
            absmax = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x_local)
            T.reduce_absmax(x_local, absmax, dim=1)
            for i in T.Parallel(block_M):
                absmax[i] = T.max(absmax[i], 1e-6) / 127
                scales[bx * block_M + i] = absmax[i]
            for i, j in T.Parallel(block_M, K):
                Q[bx * block_M + i, j] = T.round(x_local[i, j] / absmax[i]).astype("int8")

    return main


@tilelang.jit(out_idx=[-1])
def matmul_w8a8(M, N, K, block_M=64, block_N=64, block_K=64, threads=128, num_stages=2):
    """Multiply INT8 matrices and undo both scales in the epilogue."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K), "int8"),
        scale_A: T.Tensor((M,), "float32"),
        scale_B: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "int8")
            B_shared = T.alloc_shared((block_N, block_K), "int8")
            sums = T.alloc_fragment((block_M, block_N), "int32")
            result = T.alloc_fragment((block_M, block_N), "float16")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, sums, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                result[i, j] = (
                    sums[i, j].astype("float32")
                    * scale_A[by * block_M + i]
                    * scale_B[bx * block_N + j]
                )
            T.copy(result, C[by * block_M, bx * block_N])

    return main


def check(M, N, K, **tiles):
    """Compare both kernels with NumPy."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((M, K), "float32")
    a, scale_a = quantise_rows(M, K)(x)
    np.testing.assert_allclose(scale_a, np.abs(x).max(1) / 127, rtol=1e-6)
    np.testing.assert_allclose(a, x / scale_a[:, None], rtol=0, atol=0.501)
    b = rng.integers(-127, 128, (N, K)).astype("int8")
    scale_b = rng.uniform(0.01, 0.1, N).astype("float32")
    sums = a.astype("int32") @ b.astype("int32").T
    c = matmul_w8a8(M, N, K, **tiles)(a, b, scale_a, scale_b)
    np.testing.assert_allclose(c, sums * np.outer(scale_a, scale_b), rtol=2e-3, atol=1e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"W8A8 with row and column scales: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
