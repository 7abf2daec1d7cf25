"""C = A @ B with the pipeline written by hand: two shared buffers and asynchronous copies.

A (M, K), B (K, N) float16, C (M, N) float32. While one pair of tiles is multiplied, the next is
in flight; `ptx_wait_group` says how many copies may still be.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 64), (100, 70, 90)]


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block=64, block_K=32):
    """Multiply with two stages."""
    steps = T.ceildiv(K, block_K)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((2, block, block_K), "float16")
            B_shared = T.alloc_shared((2, block_K, block), "float16")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            T.async_copy(A[by * block, 0], A_shared[0, :, :])
            T.async_copy(B[0, bx * block], B_shared[0, :, :])
            T.ptx_commit_group()
            for k in T.serial(steps):
                here, there = k % 2, (k + 1) % 2
                if k + 1 < steps:
                    T.async_copy(A[by * block, (k + 1) * block_K], A_shared[there, :, :])
                    T.async_copy(B[(k + 1) * block_K, bx * block], B_shared[there, :, :])
                    T.ptx_commit_group()
                    T.ptx_wait_group(1)
                else:
                    T.ptx_wait_group(0)
                T.gemm(A_shared[here, :, :], B_shared[here, :, :], C_local)
            T.copy(C_local, C[by * block, bx * block])

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    b = rng.integers(-2, 3, (K, N)).astype("float16")
    c = matmul(M, N, K)(a, b)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM with asynchronous copies: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
