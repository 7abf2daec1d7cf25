"""All-gather + GEMM: C = A @ B, where each rank has some rows of A and some columns of B.

A (rows, K) on each rank, B (K, N), C (ranks * rows, N). Nothing is gathered: the product reads the
rows of other ranks where they are. Each rank begins with its own rows, and goes on with those of
the rank after it, so that no two of them read from one rank at a time.
"""

import numpy as np

import tile_api as tile
import tile_api.language as T

SIZES = [(2, 64, 48, 40), (3, 20, 70, 33)]  # ranks, rows, N, K


@tile.jit
def gather_gemm(size, rows, N, K, block_M=64, block_N=64, block_K=32):
    """Multiply the rows of all ranks with this rank's columns."""

    @T.prim_func
    def main(
        A: T.Symmetric((rows, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((size, rows, N), "float32"),
    ):
        T.assume(T.ranks() == size)
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(rows, block_M), size) as (bx, by, step):
            A_tile = T.alloc_shared((block_M, block_K), "float32")
            B_tile = T.alloc_shared((block_K, block_N), "float32")
            C_tile = T.alloc_fragment((block_M, block_N), "float32")
            peer = (T.rank() + step) % T.ranks()
            T.clear(C_tile)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A.at(peer)[by * block_M, k * block_K], A_tile)
                T.copy(B[k * block_K, bx * block_N], B_tile)
                T.gemm(A_tile, B_tile, C_tile)
            T.copy(C_tile, C[peer, by * block_M, bx * block_N])

    return main


def run(ranks, a, b):
    """Return the columns of the product that a rank computes; a and b are its parts."""
    (rows, K), N = a.shape, b.shape[1]
    A, c = ranks.zeros((rows, K)), np.full((ranks.size, rows, N), np.nan, "float32")
    A.local[:] = a
    gather_gemm(ranks.size, rows, N, K)(A, b, c)
    return c.reshape(-1, N)


def parts(ranks, rows, N, K):
    """Return the whole arrays, and what the ranks have of them."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (ranks * rows, K)).astype("float32")
    b = rng.integers(-2, 3, (K, ranks * N)).astype("float32")
    return a, b, np.split(a, ranks), np.split(b, ranks, axis=1)


def check(size, rows, N, K):
    """Compare the product of all ranks, side by side, with NumPy's."""
    a, b, rows_of, columns_of = parts(size, rows, N, K)
    found = tile.ranks.in_threads(
        size, lambda ranks: run(ranks, rows_of[ranks.rank], columns_of[ranks.rank].copy())
    )
    np.testing.assert_array_equal(np.concatenate(found, axis=1), a @ b)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"all-gather + GEMM: {len(SIZES)} sizes agree with one rank")


if __name__ == "__main__":
    main()
