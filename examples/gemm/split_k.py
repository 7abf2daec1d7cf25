"""Split-K GEMM: C = A @ B, where several blocks share one tile of C.

A (M, K), B (K, N), C (M, N), all float32. Each of `split_k` blocks sums its part of K and adds
it to C atomically, so C must be zero before.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 256, 4), (50, 70, 1000, 3)]


@tilelang.jit
def matmul_split_k(M, N, K, split_k, block_M=64, block_N=64, block_K=32):
    """Multiply long thin matrices on many blocks."""
    steps = T.ceildiv(K, block_K)
    steps_per_split = T.ceildiv(steps, split_k)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k, threads=128) as (
            bx,
            by,
            bz,
        ):
            A_shared = T.alloc_shared((block_M, block_K), "float32")
            B_shared = T.alloc_shared((block_K, block_N), "float32")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(steps_per_split, num_stages=2):
                start = (bz * steps_per_split + k) * block_K
                T.copy(A[by * block_M, start], A_shared)
                T.copy(B[start, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                T.atomic_add(C[by * block_M + i, bx * block_N + j], C_local[i, j])

    return main


def check(M, N, K, split_k):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float32")
    b = rng.integers(-2, 3, (K, N)).astype("float32")
    c = np.zeros((M, N), "float32")
    matmul_split_k(M, N, K, split_k)(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"split-K GEMM with atomics: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
