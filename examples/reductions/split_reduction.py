"""Column sums over more rows than one block takes: a workspace and a second launch.

X (M, N) float16, sums (N,) float32. The workspace belongs to the kernel: the caller never sees
it. Rows are read as a view with the row index split in two.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64), (256, 100)]


@tilelang.jit(out_idx=[-1])
def column_sums(M, N, parts=4, block_N=64):
    """Sum each part on its own, then the parts."""
    height = M // parts

    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), sums: T.Tensor((N,), "float32")):
        partial = T.alloc_global((parts, N), "float32")
        with T.Kernel(T.ceildiv(N, block_N), parts, threads=128) as (bx, part):
            folded = T.reshape(X, (parts, height, N))
            tile = T.alloc_fragment((height, block_N), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            T.copy(folded[part, :, bx * block_N : (bx + 1) * block_N], tile)
            T.reduce_sum(tile, total, dim=0)
            T.copy(total, partial[part, bx * block_N : (bx + 1) * block_N])

        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            tile = T.alloc_fragment((parts, block_N), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            T.copy(partial[:, bx * block_N : (bx + 1) * block_N], tile)
            T.reduce_sum(tile, total, dim=0)
            T.copy(total, sums[bx * block_N : (bx + 1) * block_N])

    return main


def check(M, N):
    """Compare one size with NumPy."""
    x = np.random.default_rng(0).integers(-9, 10, (M, N)).astype("float16")
    np.testing.assert_array_equal(column_sums(M, N)(x), x.astype("float32").sum(0))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"column sums with a workspace: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
