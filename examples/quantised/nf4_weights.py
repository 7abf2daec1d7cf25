"""C = A @ dequantise(B)^T with NF4 weights: codes into a table of sixteen normal quantiles.

A (M, K) float16; B (N, K / 2) uint8; table (16,) float32; absmax (N, K / 64) float32;
C (M, N) float32. The table lies in shared memory, where every thread looks its numbers up.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 64, 64), (33, 70, 192)]
GROUP = 64

NF4 = np.array(
    [-1, -0.69619, -0.52507, -0.39492, -0.28444, -0.18477, -0.09105, 0]
    + [0.07958, 0.16093, 0.24611, 0.33792, 0.44071, 0.56262, 0.72296, 1],
    "float32",
)


@tilelang.jit(out_idx=[-1])
def matmul_nf4(M, N, K, block_M=32, block_N=64, block_K=64):
    """Multiply float16 activations by NF4 weights, one scale per block of K."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K // 2), "uint8"),
        table: T.Tensor((16,), "float32"),
        absmax: T.Tensor((N, K // GROUP), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            table_shared = T.alloc_shared((16,), "float32")
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_N, block_K // 2), "uint8")
            W_shared = T.alloc_shared((block_N, block_K), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")

            T.copy(table, table_shared)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // 2], B_shared)
                for i, j in T.Parallel(block_N, block_K):
                    byte = B_shared[i, j // 2].astype("int32")
                    code = T.if_then_else(j % 2 == 0, byte & 15, byte >> 4)
                    scale = absmax[bx * block_N + i, (k * block_K + j) // GROUP]
                    W_shared[i, j] = table_shared[code] * scale
                T.gemm(A_shared, W_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((M, K)).astype("float16")
    packed = rng.integers(0, 256, (N, K // 2)).astype("uint8")
    absmax = rng.uniform(0.5, 2, (N, K // GROUP)).astype("float32")
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(N, K)
    weights = (NF4[codes] * absmax.repeat(GROUP, 1)).astype("float16").astype("float32")
    c = matmul_nf4(M, N, K)(a, packed, NF4, absmax)
    np.testing.assert_allclose(c, a.astype("float32") @ weights.T, rtol=1e-3, atol=1e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"NF4 weights by table: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
