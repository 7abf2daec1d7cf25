"""Keep the positive numbers, in no particular order: votes of warps instead of many atomics.

x (N,) float32, kept (N,) float32, count (1,) int32, zero before. A warp counts its hits with a
ballot, one lane reserves room for all, and a shuffle tells the others where it is.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(256,), (1000,)]


@tilelang.jit
def compact(threads=128):
    """Compact; the length is bound at run time."""
    N = T.dynamic("n")

    @T.prim_func
    def main(
        x: T.Tensor((N,), "float32"),
        kept: T.Tensor((N,), "float32"),
        count: T.Tensor((1,), "int32"),
    ):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
            at = bx * threads + T.get_thread_binding()
            lane = T.get_lane_idx()
            value = x[at]
            votes = T.ballot_sync(0xFFFFFFFF, value > 0)
            start = T.alloc_var("int32", init=0)
            if lane == 0:
                start = T.atomic_add(count[0], T.popcount(votes).astype("int32"), return_prev=True)
            first = T.shfl_sync(start, 0)
            below = votes & ((T.uint32(1) << lane.astype("uint32")) - T.uint32(1))
            if value > 0:
                kept[first + T.popcount(below).astype("int32")] = value

    return main


def check(N):
    """Compare one size with NumPy, as sets."""
    x = np.random.default_rng(0).standard_normal(N).astype("float32")
    kept, count = np.full(N, np.nan, "float32"), np.zeros(1, "int32")
    compact()(x, kept, count)
    assert count[0] == (x > 0).sum()
    np.testing.assert_array_equal(np.sort(kept[: count[0]]), np.sort(x[x > 0]))
    assert np.isnan(kept[count[0] :]).all()


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"stream compaction with votes: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
