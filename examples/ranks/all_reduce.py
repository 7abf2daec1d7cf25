"""All-reduce: each rank gets the sum of what all ranks have, two ways.

In one shot each rank reads all of what all have: ranks * n elements, for small n. In two shots each
rank adds up one part of it, and stores the sums on all ranks: 2 * n elements, for large n. Both add
in the order of ranks, so that all ranks have the same bits.
"""

import numpy as np

import tile_api as tile
import tile_api.language as T

SIZES = [(2, 1000), (3, 5000)]  # ranks, elements


def summed(X, size, i):
    """Return the sum of an element on all ranks, as an expression."""
    return sum((X.at(peer)[i] for peer in range(1, size)), X.at(0)[i])


@tile.jit
def one_shot(size, n, block=1024):
    """Add up all elements on each rank."""

    @T.prim_func
    def main(X: T.Symmetric((n,), "float32"), Y: T.Tensor((n,), "float32")):
        T.assume(T.ranks() == size)
        with T.Kernel(T.ceildiv(n, block)) as b:
            for i in T.Parallel(block):
                Y[b * block + i] = summed(X, size, b * block + i)

    return main


@tile.jit
def two_shot(size, n, block=1024):
    """Add up one part of the elements on each rank, and hand it to all: X changes in place."""
    share = -(-n // (size * block))  # blocks of a part

    @T.prim_func
    def main(X: T.Symmetric((n,), "float32")):
        T.assume(T.ranks() == size)
        with T.Kernel(share) as b:
            total = T.alloc_fragment((block,), "float32")
            start = (T.rank() * share + b) * block
            for i in T.Parallel(block):
                total[i] = summed(X, size, start + i)
            for peer in T.serial(size):
                T.copy(total, X.at(peer)[start])

    return main


def run(ranks, x):
    """Return the sums of both ways."""
    X, y = ranks.zeros(x.shape), np.full_like(x, np.nan)
    X.local[:] = x
    one_shot(ranks.size, len(x))(X, y)
    two_shot(ranks.size, len(x))(X)
    return y, X.local.copy()


def check(size, n):
    """Compare both with NumPy."""
    x = np.random.default_rng(0).integers(-9, 10, (size, n)).astype("float32")
    for found in tile.ranks.in_threads(size, lambda ranks: run(ranks, x[ranks.rank])):
        for y in found:
            np.testing.assert_array_equal(y, x.sum(0))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"all-reduce in one shot and in two: {len(SIZES)} sizes agree with one rank")


if __name__ == "__main__":
    main()
