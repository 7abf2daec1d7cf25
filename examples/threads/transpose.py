"""Transpose written thread by thread: 32 x 8 threads move a tile of 32 x 32.

A (M, N), B (N, M) float32. The tile has one column more than needed, the old remedy against
bank conflicts.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 64), (50, 45)]


@tilelang.jit(out_idx=[-1])
def transpose(M, N, tile=32, rows=8):
    """Read along rows, wait, write along rows."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, tile), T.ceildiv(M, tile), threads=(tile, rows)) as (bx, by):
            tx, ty = T.get_thread_bindings()[:2]
            staged = T.alloc_shared((tile, tile + 1), "float32")
            for r in T.serial(0, tile, rows):
                staged[r + ty, tx] = A[by * tile + r + ty, bx * tile + tx]
            T.sync_threads()
            for r in T.serial(0, tile, rows):
                B[bx * tile + r + ty, by * tile + tx] = staged[tx, r + ty]

    return main


def check(M, N):
    """Compare one size with NumPy."""
    a = np.random.default_rng(0).standard_normal((M, N), "float32")
    np.testing.assert_array_equal(transpose(M, N)(a), a.T)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"transpose, thread by thread: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
