"""W4A16: C = A @ dequantise(B)^T with INT4 weights, a scale and a zero point per group.

A (M, K) float16; B (N, K / 2) uint8, two weights per byte; scales (N, K / group) float16;
zeros (N, K / group) uint8; C (M, N) float16. A weight is (code - zero) * scale. Weights are the
left operand, so that they go from the registers in which they are expanded into the product.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 64, 128, 64), (1, 70, 256, 32), (77, 40, 128, 128)]


@tilelang.jit(out_idx=[-1])
def matmul_w4a16(M, N, K, group, block_M=32, block_N=64, block_K=64, threads=128, num_stages=2):
    """Multiply float16 activations by grouped INT4 weights."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), T.float16),
        B: T.Tensor((N, K // 2), T.uint8),
        scales: T.Tensor((N, K // group), T.float16),
        zeros: T.Tensor((N, K // group), T.uint8),
        C: T.Tensor((M, N), T.float16),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), T.float16)
            B_shared = T.alloc_shared((block_N, block_K // 2), T.uint8)
            B_local = T.alloc_fragment((block_N, block_K // 2), T.uint8)
            W_local = T.alloc_fragment((block_N, block_K), T.float16)
            Ct_local = T.alloc_fragment((block_N, block_M), T.float32)

            T.clear(Ct_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // 2], B_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    code = (B_local[i, j // 2] >> (j % 2 * 4).astype("uint8")) & T.uint8(15)
                    g = (k * block_K + j) // group
                    row = bx * block_N + i
                    offset = code.astype("int32") - zeros[row, g].astype("int32")
                    W_local[i, j] = offset.astype("float16") * scales[row, g]
                T.gemm(W_local, A_shared, Ct_local, transpose_B=True)
            for i, j in T.Parallel(block_N, block_M):
                C[by * block_M + j, bx * block_N + i] = Ct_local[i, j]

    return main


def check(M, N, K, group, **tiles):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    packed = rng.integers(0, 256, (N, K // 2)).astype("uint8")
    scales = rng.choice(np.array([0.25, 0.5, 1], "float16"), (N, K // group))
    zeros = rng.integers(6, 10, (N, K // group)).astype("uint8")
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(N, K).astype("float32")
    weights = (codes - zeros.repeat(group, 1)) * scales.repeat(group, 1)
    c = matmul_w4a16(M, N, K, group, **tiles)(a, packed, scales, zeros)
    np.testing.assert_array_equal(c, (a.astype("float32") @ weights.T).astype("float16"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"INT4 weights with group scales: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
