"""C = relu(A) @ B, where the order and the stages of the pipeline are given statement by statement.

A (M, K), B (K, N), C (M, N) float32. The two loads are issued two steps ahead (stage 0), the
activation and the product follow (stage 2). Results are those of the plain loop.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 64), (50, 70, 130)]


@tilelang.jit(out_idx=[-1])
def matmul_relu(M, N, K, block=64, block_K=32):
    """Multiply with a software pipeline of three stages."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, block_K), "float32")
            B_shared = T.alloc_shared((block_K, block), "float32")
            A_local = T.alloc_fragment((block, block_K), "float32")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(
                T.ceildiv(K, block_K), order=[0, 1, 2, 3, 4], stage=[0, 0, 2, 2, 2]
            ):
                T.copy(A[by * block, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block], B_shared)
                T.copy(A_shared, A_local)
                for i, j in T.Parallel(block, block_K):
                    A_local[i, j] = T.max(A_local[i, j], 0)
                T.gemm(A_local, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (M, K)).astype("float32")
    b = rng.integers(-3, 4, (K, N)).astype("float32")
    np.testing.assert_array_equal(matmul_relu(M, N, K)(a, b), np.maximum(a, 0) @ b)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM with a schedule by hand: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
