"""y = A @ x in INT8 with the four-way dot product instruction, a warp per row.

A (N, K), x (K,) int8, y (N,) int32, exact; K a multiple of 4.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(8, 128), (13, 500)]


@tilelang.jit(out_idx=[-1])
def gemv_int8(N, K, rows=4):
    """Multiply; lanes take four numbers at a time, then the warp adds up."""

    @T.prim_func
    def main(A: T.Tensor((N, K), "int8"), x: T.Tensor((K,), "int8"), y: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, rows), threads=32 * rows) as bn:
            lane, row = T.get_lane_idx(), bn * rows + T.get_warp_idx()
            a = T.alloc_local((4,), "int8")
            b = T.alloc_local((4,), "int8")
            acc = T.alloc_local((1,), "int32")
            acc[0] = 0
            for k in T.serial(T.ceildiv(K, 128)):
                for v in T.vectorized(4):
                    a[v] = A[row, k * 128 + lane * 4 + v]
                    b[v] = x[k * 128 + lane * 4 + v]
                T.dp4a(a, b, acc)
            total = T.warp_reduce_sum(acc[0])
            if lane == 0:
                y[row] = total

    return main


def check(N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (N, K)).astype("int8")
    x = rng.integers(-128, 128, K).astype("int8")
    np.testing.assert_array_equal(gemv_int8(N, K)(a, x), a.astype("int32") @ x.astype("int32"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"INT8 GEMV with dp4a: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
