"""Sum of a vector by a tree in shared memory, each step half as many threads.

x (N,) float32; partial (blocks,) float32. Written thread by thread, with a barrier after every
step.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(256,), (1000,)]


@tilelang.jit(out_idx=[-1])
def block_sums(N, threads=128):
    """Add up `threads` numbers per block."""
    levels = threads.bit_length() - 1

    @T.prim_func
    def main(
        x: T.Tensor((N,), "float32"),
        partial: T.Tensor((T.ceildiv(N, threads),), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
            tx = T.get_thread_binding()
            numbers = T.alloc_shared((threads,), "float32")
            numbers[tx] = x[bx * threads + tx]
            T.sync_threads()
            for level in T.serial(levels):
                reach = threads >> (level + 1)
                if tx < reach:
                    numbers[tx] += numbers[tx + reach]
                T.sync_threads()
            if tx == 0:
                partial[bx] = numbers[0]

    return main


def check(N, threads=128):
    """Compare one size with NumPy."""
    x = np.random.default_rng(0).integers(-99, 100, N).astype("float32")
    padded = np.pad(x, (0, -N % threads)).reshape(-1, threads)
    np.testing.assert_array_equal(block_sums(N)(x), padded.sum(1))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"tree reduction in shared memory: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
