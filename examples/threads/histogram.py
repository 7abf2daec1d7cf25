"""Histogram with counters in shared memory, added to the global ones at the end.

values (N,) uint8, counts (256,) int32, zero before. Each thread walks over the input with the
stride of the whole grid.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1000,), (5003,)]


@tilelang.jit
def histogram(blocks=4, threads=128):
    """Count; the length is bound when the kernel is called."""
    N = T.dynamic("n")

    @T.prim_func
    def main(values: T.Tensor((N,), "uint8"), counts: T.Tensor((256,), "int32")):
        with T.Kernel(blocks, threads=threads) as bx:
            tx = T.get_thread_binding()
            local = T.alloc_shared((256,), "int32")
            local[tx] = 0
            local[tx + threads] = 0
            T.sync_threads()
            for step in T.serial(T.ceildiv(N, blocks * threads)):
                at = (step * blocks + bx) * threads + tx
                if at < N:
                    T.atomic_add(local[values[at].astype("int32")], 1)
            T.sync_threads()
            T.atomic_add(counts[tx], local[tx])
            T.atomic_add(counts[tx + threads], local[tx + threads])

    return main


def check(N):
    """Compare one size with NumPy."""
    values = np.random.default_rng(0).integers(0, 256, N).astype("uint8")
    counts = np.zeros(256, "int32")
    histogram()(values, counts)
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=256))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"histogram with shared atomics: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
