"""GEMM + reduce-scatter: C = A @ B, where each rank has a part of what is summed over.

A (ranks * rows, K) and B (K, N) are each rank's part, C (rows, N) its rows of the whole sum. A tile
of another rank's rows goes into that rank's workspace, and a signal after it. Each rank computes
its own rows last, waits for the others' sums of a tile, and adds them in the order of ranks.
"""

import numpy as np

import tile_api as tile
import tile_api.language as T

SIZES = [(2, 64, 48, 40), (3, 20, 70, 33)]  # ranks, rows, N, K


@tile.jit
def gemm_scatter(size, rows, N, K, block_M=64, block_N=64, block_K=32):
    """Multiply, and add up each rank's rows there."""
    tiles_N, tiles_M = -(-N // block_N), -(-rows // block_M)

    @T.prim_func
    def main(
        A: T.Tensor((size, rows, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((rows, N), "float32"),
        sums: T.Symmetric((size, rows, N), "float32"),
        arrived: T.Signals((tiles_M * tiles_N,)),
    ):
        T.assume(T.ranks() == size)
        with T.Kernel(tiles_N, tiles_M, size) as (bx, by, step):
            A_tile = T.alloc_shared((block_M, block_K), "float32")
            B_tile = T.alloc_shared((block_K, block_N), "float32")
            C_tile = T.alloc_fragment((block_M, block_N), "float32")
            owner = (T.rank() + 1 + step) % T.ranks()
            T.clear(C_tile)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[owner, by * block_M, k * block_K], A_tile)
                T.copy(B[k * block_K, bx * block_N], B_tile)
                T.gemm(A_tile, B_tile, C_tile)
            T.copy(C_tile, sums.at(owner)[T.rank(), by * block_M, bx * block_N])
            T.signal(arrived.at(owner)[by * tiles_N + bx])
            if step == size - 1:
                T.wait_signal(arrived[by * tiles_N + bx], size)
                for i, j in T.Parallel(block_M, block_N):
                    row, column = by * block_M + i, bx * block_N + j
                    C[row, column] = sum(sums[peer, row, column] for peer in range(size))

    return main


def run(ranks, a, b):
    """Return the rows of the product that a rank keeps; a and b are its parts."""
    (M, K), N, size = a.shape, b.shape[1], ranks.size
    rows = M // size
    kernel = gemm_scatter(size, rows, N, K)
    sums, arrived = ranks.zeros((size, rows, N)), ranks.signals(-(-rows // 64) * -(-N // 64))
    c = np.full((rows, N), np.nan, "float32")
    for _ in range(2):  # signals are at zero again
        kernel(a.reshape(size, rows, K), b, c, sums, arrived)
    return c


def parts(ranks, rows, N, K):
    """Return the whole arrays, and what the ranks have of them."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (ranks * rows, ranks * K)).astype("float32")
    b = rng.integers(-2, 3, (ranks * K, N)).astype("float32")
    return a, b, [x.copy() for x in np.split(a, ranks, axis=1)], np.split(b, ranks)


def check(size, rows, N, K):
    """Compare the rows of all ranks, below each other, with NumPy's product."""
    a, b, columns_of, rows_of = parts(size, rows, N, K)
    found = tile.ranks.in_threads(
        size, lambda ranks: run(ranks, columns_of[ranks.rank], rows_of[ranks.rank])
    )
    np.testing.assert_array_equal(np.concatenate(found), a @ b)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM + reduce-scatter: {len(SIZES)} sizes agree with one rank")


if __name__ == "__main__":
    main()
