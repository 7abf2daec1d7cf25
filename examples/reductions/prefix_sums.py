"""Prefix sums: along rows of any length, in chunks with a carry; and reversed, along columns.

X and Y (M, N) float32, integer-valued here, so that all orders of addition agree.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(8, 64), (5, 300)]


@tilelang.jit(out_idx=[-1])
def cumsum_rows(M, N, block_M=4, block_N=64):
    """Scan chunk after chunk; the last column of one is the carry of the next."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            tile = T.alloc_shared((block_M, block_N), "float32")
            sums = T.alloc_fragment((block_M,), "float32")
            carry = T.alloc_fragment((block_M,), "float32")
            T.clear(carry)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, k * block_N], tile)
                T.reduce_sum(tile, sums, dim=1)
                T.cumsum(tile, dim=1)
                for i, j in T.Parallel(block_M, block_N):
                    tile[i, j] += carry[i]
                T.copy(tile, Y[bx * block_M, k * block_N])
                for i in T.Parallel(block_M):
                    carry[i] += sums[i]

    return main


@tilelang.jit(out_idx=[-1])
def suffix_sums_columns(M, N, block_N=64):
    """Scan whole columns from the end."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            tile = T.alloc_fragment((M, block_N), "float32")
            scanned = T.alloc_fragment((M, block_N), "float32")
            T.copy(X[0, bx * block_N], tile)
            T.cumsum(tile, scanned, dim=0, reverse=True)
            T.copy(scanned, Y[0, bx * block_N])

    return main


def check(M, N):
    """Compare both with NumPy."""
    x = np.random.default_rng(0).integers(-9, 10, (M, N)).astype("float32")
    np.testing.assert_array_equal(cumsum_rows(M, N)(x), x.cumsum(1))
    np.testing.assert_array_equal(suffix_sums_columns(M, N)(x), x[::-1].cumsum(0)[::-1])


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"prefix and suffix sums: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
