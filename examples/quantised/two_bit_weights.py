"""C = A @ unpack(B)^T with ternary weights in two bits and INT8 activations.

A (M, K) int8; B (N, K / 4) uint8, four weights -1, 0 or 1 per byte (stored plus one);
C (M, N) int32, exact.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 32, 64), (20, 50, 256)]


@tilelang.jit(out_idx=[-1])
def matmul_ternary(M, N, K, block_M=32, block_N=32, block_K=64):
    """Multiply INT8 activations by two-bit weights."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K // 4), "uint8"),
        C: T.Tensor((M, N), "int32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "int8")
            B_shared = T.alloc_shared((block_N, block_K // 4), "uint8")
            W_shared = T.alloc_shared((block_N, block_K), "int8")
            C_local = T.alloc_fragment((block_M, block_N), "int32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // 4], B_shared)
                for i, j in T.Parallel(block_N, block_K):
                    code = T.shift_right(B_shared[i, j // 4].astype("int32"), j % 4 * 2) & 3
                    W_shared[i, j] = (code - 1).astype("int8")
                T.gemm(A_shared, W_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (M, K)).astype("int8")
    weights = rng.integers(-1, 2, (N, K))
    codes = (weights + 1).reshape(N, K // 4, 4)
    packed = (codes << np.arange(0, 8, 2)).sum(-1).astype("uint8")
    c = matmul_ternary(M, N, K)(a, packed)
    np.testing.assert_array_equal(c, a.astype("int32") @ weights.T)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"two-bit weights: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
