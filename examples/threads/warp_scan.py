"""Prefix sums by warps: scan with shuffles, sums of warps in shared memory, one more scan.

x and y (M, N) int32, N up to the number of threads; one block per row.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(2, 128), (3, 200)]


@tilelang.jit(out_idx=[-1])
def scan_rows(M, N, threads=256):
    """Scan each row with one thread per number."""
    warps = threads // 32

    @T.prim_func
    def main(x: T.Tensor((M, N), "int32"), y: T.Tensor((M, N), "int32")):
        with T.Kernel(M, threads=threads) as bx:
            tx = T.get_thread_binding()
            lane, warp = T.get_lane_idx(), T.get_warp_idx()
            warp_sums = T.alloc_shared((warps,), "int32")
            total = T.alloc_var("int32")
            total = x[bx, tx]
            for step in T.unroll(5):
                below = T.shfl_up(total, 1 << step)
                if lane >= 1 << step:
                    total = total + below
            if lane == 31:
                warp_sums[warp] = total
            T.sync_threads()
            for w in T.serial(warp):
                total = total + warp_sums[w]
            if tx < N:
                y[bx, tx] = total

    return main


def check(M, N):
    """Compare one size with NumPy."""
    x = np.random.default_rng(0).integers(-99, 100, (M, N)).astype("int32")
    np.testing.assert_array_equal(scan_rows(M, N)(x), x.cumsum(1))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"prefix sums with shuffles: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
