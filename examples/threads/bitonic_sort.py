"""Sorting rows by a bitonic network in shared memory, keys together with their positions.

keys (M, N) float32, N a power of two; sorted (M, N) float32 and order (M, N) int32.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1, 64), (3, 256)]


@tilelang.jit(out_idx=[1, 2])
def sort_rows(M, N):
    """Sort one row per block, one thread per pair."""
    levels = N.bit_length() - 1
    threads = N // 2

    @T.prim_func
    def main(
        keys: T.Tensor((M, N), "float32"),
        result: T.Tensor((M, N), "float32"),
        order: T.Tensor((M, N), "int32"),
    ):
        with T.Kernel(M, threads=threads) as bx:
            tx = T.get_thread_binding()
            key = T.alloc_shared((N,), "float32")
            place = T.alloc_shared((N,), "int32")
            for part in T.serial(2):
                key[tx + part * threads] = keys[bx, tx + part * threads]
                place[tx + part * threads] = tx + part * threads
            T.sync_threads()
            for level in T.serial(levels):
                for step in T.serial(level + 1):
                    distance = 1 << (level - step)
                    low = 2 * tx - (tx & (distance - 1))
                    high = low + distance
                    ascending = (low >> (level + 1)) & 1 == 0
                    if (key[low] > key[high]) == ascending:
                        key_low, key_high = key[low], key[high]
                        place_low, place_high = place[low], place[high]
                        key[low] = key_high
                        key[high] = key_low
                        place[low] = place_high
                        place[high] = place_low
                    T.sync_threads()
            for part in T.serial(2):
                result[bx, tx + part * threads] = key[tx + part * threads]
                order[bx, tx + part * threads] = place[tx + part * threads]

    return main


def check(M, N):
    """Compare one size with NumPy; all keys differ, so there is one order."""
    rng = np.random.default_rng(0)
    keys = np.stack([rng.permutation(N) for _ in range(M)]).astype("float32")
    result, order = sort_rows(M, N)(keys)
    np.testing.assert_array_equal(result, np.sort(keys, 1))
    np.testing.assert_array_equal(order, np.argsort(keys, 1))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"bitonic sort: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
