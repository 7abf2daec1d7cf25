"""Listing B.2 of the paper: Ct = (A @ dequantise(B)^T)^T with FP4 weights.

A (M, K) float16; B (N, K / 2) uint8, two E2M1 numbers per byte, the even one in the low half;
Ct (N, M). Weights are expanded in registers, right before the product.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 64), (50, 70, 192), (1, 128, 96)]

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], "float16")


def fp4_to_fp16(num_bits, byte, position, dtype):
    """Return the E2M1 number at `position` of a packed byte: sign, two exponent bits, one more."""
    code = (byte >> (position * num_bits).astype("uint8")) & T.uint8((1 << num_bits) - 1)
    sign = (code >> T.uint8(3)).astype("uint16")
    exponent = ((code >> T.uint8(1)) & T.uint8(3)).astype("uint16")
    mantissa = (code & T.uint8(1)).astype("uint16")
    # float16 has a bias of 15 and ten mantissa bits, E2M1 a bias of 1 and one.
    normal = ((exponent + T.uint16(14)) << T.uint16(10)) | (mantissa << T.uint16(9))
    subnormal = mantissa * T.uint16(0x3800)  # nothing or a half
    magnitude = T.Select(exponent == T.uint16(0), subnormal, normal)
    return T.reinterpret((sign << T.uint16(15)) | magnitude, dtype)


@tilelang.jit(out_idx=[-1])
def matmul_fp16_fp4(M, N, K, block_M=64, block_N=64, block_K=64, num_stages=2, threads=256):
    """Multiply float16 activations by packed FP4 weights."""
    in_dtype, accum_dtype, out_dtype, storage_dtype = "float16", "float32", "float16", "uint8"
    num_bits, num_elems_per_byte = 4, 2

    @T.prim_func
    def main(
        A: T.Tensor((M, K), in_dtype),
        B: T.Tensor((N, K // num_elems_per_byte), storage_dtype),
        Ct: T.Tensor((N, M), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), in_dtype)
            B_shared = T.alloc_shared((block_N, block_K // num_elems_per_byte), storage_dtype)
            B_local = T.alloc_fragment((block_N, block_K // num_elems_per_byte), storage_dtype)
            B_dequantize_local = T.alloc_fragment((block_N, block_K), in_dtype)
            Ct_local = T.alloc_fragment((block_N, block_M), accum_dtype)

            T.clear(Ct_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // num_elems_per_byte], B_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    B_dequantize_local[i, j] = fp4_to_fp16(
                        num_bits, B_local[i, j // 2], j % 2, dtype=in_dtype
                    )
                T.gemm(B_dequantize_local, A_shared, Ct_local, transpose_B=True)
            T.copy(Ct_local, Ct[bx * block_N, by * block_M])

    return main


def check(M, N, K, **tiles):
    """Compare one size with NumPy; all products of small numbers are exact."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    packed = rng.integers(0, 256, (N, K // 2)).astype("uint8")
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(N, K)
    expected = E2M1[codes].astype("float32") @ a.astype("float32").T
    ct = matmul_fp16_fp4(M, N, K, **tiles)(a, packed)
    np.testing.assert_array_equal(ct, expected.astype("float16"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"listing B.2, FP4 weights: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
