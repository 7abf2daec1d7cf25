"""Hadamard transform of rows by butterflies: in registers, among a warp, in shared memory.

X and Y (M, N) float32, N a power of two. Every thread holds 8 numbers; steps within a thread
need no exchange, steps within a warp use shuffles, the rest goes through shared memory.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(2, 256), (3, 1024)]


@tilelang.jit(out_idx=[-1])
def hadamard(M, N):
    """Transform one row per block."""
    each = 8
    threads = N // each
    in_thread, in_warp = 3, min(5, threads.bit_length() - 1)
    above = threads.bit_length() - 1 - in_warp

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=threads) as bx:
            tx = T.get_thread_binding()
            mine = T.alloc_local((each,), "float32")
            other = T.alloc_local((each,), "float32")
            exchange = T.alloc_shared((threads, each), "float32")
            for v in T.vectorized(each):
                mine[v] = X[bx, tx * each + v]
            for step in T.unroll(in_thread):
                for v in T.serial(each):
                    partner = v ^ (1 << step)
                    other[v] = mine[partner] + T.Select(v < partner, mine[v], -mine[v])
                for v in T.serial(each):
                    mine[v] = other[v]
            for step in T.unroll(in_warp):
                for v in T.serial(each):
                    other[v] = T.shfl_xor(mine[v], 1 << step)
                for v in T.serial(each):
                    mine[v] = other[v] + T.Select((tx >> step) & 1 == 0, mine[v], -mine[v])
            for step in T.serial(above):
                for v in T.vectorized(each):
                    exchange[tx, v] = mine[v]
                T.sync_threads()
                bit = in_warp + step
                for v in T.serial(each):
                    found = exchange[tx ^ (1 << bit), v]
                    mine[v] = found + T.Select((tx >> bit) & 1 == 0, mine[v], -mine[v])
                T.sync_threads()
            for v in T.vectorized(each):
                Y[bx, tx * each + v] = mine[v]

    return main


def check(M, N):
    """Compare one size with a product by the Hadamard matrix."""
    x = np.random.default_rng(0).integers(-9, 10, (M, N)).astype("float32")
    matrix = np.ones((1, 1), "float32")
    while len(matrix) < N:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    np.testing.assert_array_equal(hadamard(M, N)(x), x @ matrix)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"Hadamard transform: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
