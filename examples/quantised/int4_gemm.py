"""INT4 times INT4: C = A @ B^T with two numbers per byte in memory, INT32 accumulators.

A (M, K), B (N, K) int4, given as packed bytes (M, K / 2) and (N, K / 2), the even number in the
low half; C (M, N) int32, exact.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 32, 64), (50, 20, 96)]


@tilelang.jit(out_idx=[-1])
def matmul_int4(M, N, K, block=32, block_K=32):
    """Multiply; the element type says how memory is read."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "int4"),
        B: T.Tensor((N, K), "int4"),
        C: T.Tensor((M, N), "int32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, block_K), "int4")
            B_shared = T.alloc_shared((block, block_K), "int4")
            C_local = T.alloc_fragment((block, block), "int32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block, k * block_K], A_shared)
                T.copy(B[bx * block, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block, bx * block])

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, (rows, K)) for rows in (M, N))
    packed = [
        ((x[:, ::2] & 15) | (x[:, 1::2] & 15) << 4).astype("uint8").view("int8") for x in (a, b)
    ]
    np.testing.assert_array_equal(matmul_int4(M, N, K)(*packed), a @ b.T)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"INT4 GEMM: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
