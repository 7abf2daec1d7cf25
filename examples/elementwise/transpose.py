"""B = A^T through shared memory: whole tiles are read along rows and written along rows.

A (M, N), B (N, M) float16. The tile is padded in memory by a layout, so that on a GPU neither
direction meets bank conflicts.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 64), (70, 33)]


@tilelang.jit(out_idx=[-1])
def transpose(M, N, block=32):
    """Transpose tile by tile."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((N, M), "float16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            tile = T.alloc_shared((block, block), "float16")
            turned = T.alloc_shared((block, block), "float16")
            T.annotate_layout({tile: T.Layout((block, block), lambda i, j: i * (block + 1) + j)})
            T.copy(A[by * block, bx * block], tile)
            T.transpose(tile, turned)
            T.copy(turned, B[bx * block, by * block])

    return main


def check(M, N):
    """Compare one size with NumPy."""
    a = np.random.default_rng(0).standard_normal((M, N)).astype("float16")
    np.testing.assert_array_equal(transpose(M, N)(a), a.T)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"transpose through shared memory: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
