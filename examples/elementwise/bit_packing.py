"""Signs of a matrix packed 32 to a word, and a product of such matrices by counting bits.

X (M, K) float32 becomes words (M, K / 32) uint32, a bit being 1 for a number below zero. The
product (M, N) int32 of two sign matrices is K - 2 * (number of differing bits).
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(8, 8, 64), (30, 19, 160)]


@tilelang.jit(out_idx=[-1])
def pack_signs(M, K, block=8):
    """Collect the sign bits of 32 neighbours in one word."""
    words = K // 32

    @T.prim_func
    def main(X: T.Tensor((M, K), "float32"), packed: T.Tensor((M, words), "uint32")):
        with T.Kernel(T.ceildiv(M, block), threads=64) as bx:
            for i, w in T.Parallel(block, words):
                word = T.alloc_var("uint32", init=0)
                for b in T.serial(32):
                    sign = T.reinterpret(X[bx * block + i, w * 32 + b], "uint32") >> T.uint32(31)
                    word = word | (sign << b.astype("uint32"))
                packed[bx * block + i, w] = word

    return main


@tilelang.jit(out_idx=[-1])
def multiply_signs(M, N, K, block=16):
    """Multiply matrices of signs: exclusive or, then count."""
    words = K // 32

    @T.prim_func
    def main(
        A: T.Tensor((M, words), "uint32"),
        B: T.Tensor((N, words), "uint32"),
        C: T.Tensor((M, N), "int32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, words), "uint32")
            B_shared = T.alloc_shared((block, words), "uint32")
            different = T.alloc_fragment((block, block), "int32")
            T.copy(A[by * block, 0], A_shared)
            T.copy(B[bx * block, 0], B_shared)
            T.clear(different)
            for w in T.serial(words):
                for i, j in T.Parallel(block, block):
                    different[i, j] += T.popcount(A_shared[i, w] ^ B_shared[j, w])
            for i, j in T.Parallel(block, block):
                different[i, j] = K - 2 * different[i, j]
            T.copy(different, C[by * block, bx * block])

    return main


def check(M, N, K):
    """Compare both kernels with NumPy."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, K)).astype("float32") for rows in (M, N))
    packed = [pack_signs(len(x), K)(x) for x in (a, b)]
    bits = np.packbits(a < 0, axis=1, bitorder="little").view("uint32")
    np.testing.assert_array_equal(packed[0], bits)
    c = multiply_signs(M, N, K)(*packed)
    np.testing.assert_array_equal(c, np.sign(a) @ np.sign(b).T)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"packed signs and their product: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
