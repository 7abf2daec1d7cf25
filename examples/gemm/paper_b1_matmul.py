"""Listing B.1 of the paper: C = A @ B, with A (M, K), B (K, N) and C (M, N) in float16.

The body of the listing as it stands, in eager style: calling the function with tensors
compiles it for their sizes and runs it.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(128, 128, 64), (256, 128, 192)]


@tilelang.jit
def matmul(A, B, C, block_M=64, block_N=64, block_K=32, threads=128, num_stages=2):
    """Multiply two matrices whose sides are multiples of the block's."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C: T.Tensor((M, N), T.float16)

    with T.Kernel(N // block_N, M // block_M, threads=threads) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), T.float16)
        B_shared = T.alloc_shared((block_K, block_N), T.float16)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)

        T.clear(C_local)
        for k in T.Pipelined(K // block_K, num_stages=num_stages):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)

        T.copy(C_local, C[by * block_M, bx * block_N])


def check(M, N, K, **tiles):
    """Compare one size with NumPy; small integers make the sums exact."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    b = rng.integers(-2, 3, (K, N)).astype("float16")
    c = np.full((M, N), np.nan, "float16")
    matmul(a, b, c, **tiles)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"listing B.1, matmul: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
