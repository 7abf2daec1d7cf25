"""Stream-K GEMM: C = A @ B on a fixed number of blocks that share the work to the last step.

A (M, K), B (K, N), C (M, N) float32. The steps along K of all tiles form one line; every block
takes an equal part of it. A tile that more than one block has worked on is added up
atomically, so C must be zero before.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 128, 3), (130, 100, 90, 5), (32, 32, 32, 4)]


@tilelang.jit
def matmul_stream_k(
    M, N, K, workers, dtype, block_M=32, block_N=32, block_K=32, threads=128, num_stages=2
):
    """Multiply, whatever the shape, with all workers busy."""
    tiles_n = T.ceildiv(N, block_N)
    tiles = T.ceildiv(M, block_M) * tiles_n
    steps_per_tile = T.ceildiv(K, block_K)
    share = T.ceildiv(tiles * steps_per_tile, workers)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(workers, threads=threads) as worker:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            step = T.alloc_var("int32", init=worker * share)
            stop = T.min((worker + 1) * share, tiles * steps_per_tile)
            while step < stop:
                tile = step // steps_per_tile
                first = step % steps_per_tile
                count = T.min(steps_per_tile - first, stop - step)
                row = tile // tiles_n * block_M
                col = tile % tiles_n * block_N
                T.clear(C_local)
                for k in T.Pipelined(count, num_stages=num_stages):
                    T.copy(A[row, (first + k) * block_K], A_shared)
                    T.copy(B[(first + k) * block_K, col], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                if count == steps_per_tile:
                    T.copy(C_local, C[row, col])
                else:
                    T.atomic_add(C[row, col], C_local)
                step = step + count

    return main


def check(M, N, K, workers, dtype="float32", **tiles):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype(dtype)
    b = rng.integers(-2, 3, (K, N)).astype(dtype)
    c = np.zeros((M, N), "float32")
    matmul_stream_k(M, N, K, workers, dtype, **tiles)(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"stream-K GEMM: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
