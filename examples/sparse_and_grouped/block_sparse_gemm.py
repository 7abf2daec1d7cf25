"""Block-sparse GEMM: C = A @ B, where a mask says which blocks of A are not zero.

A (M, K), B (K, N), C (M, N) float16; mask (M / 32, K / 32) bool. Masked blocks of A are never
read: they may hold anything.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 64), (96, 50, 160)]
BLOCK = 32


@tilelang.jit(out_idx=[-1])
def block_sparse_matmul(M, N, K, block_N=32):
    """Multiply the blocks that are there."""
    dtype = "float16"

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        mask: T.Tensor((M // BLOCK, K // BLOCK), "bool"),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), M // BLOCK, threads=128) as (bx, by):
            A_shared = T.alloc_shared((BLOCK, BLOCK), dtype)
            B_shared = T.alloc_shared((BLOCK, block_N), dtype)
            C_local = T.alloc_fragment((BLOCK, block_N), "float32")
            C_shared = T.alloc_shared((BLOCK, block_N), dtype)
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            for k in T.Pipelined(K // BLOCK, num_stages=2):
                if mask[by, k]:
                    T.copy(A[by * BLOCK, k * BLOCK], A_shared)
                    T.copy(B[k * BLOCK, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * BLOCK, bx * block_N])

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    b = rng.integers(-2, 3, (K, N)).astype("float16")
    mask = rng.random((M // BLOCK, K // BLOCK)) < 0.5
    wide = mask.repeat(BLOCK, 0).repeat(BLOCK, 1)
    expected = np.where(wide, a, 0).astype("float32") @ b.astype("float32")
    a[~wide] = np.nan
    np.testing.assert_array_equal(block_sparse_matmul(M, N, K)(a, b, mask), expected)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"block-sparse GEMM: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
