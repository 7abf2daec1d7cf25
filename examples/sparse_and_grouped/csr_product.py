"""Sparse times dense: Y = S @ X with S in compressed sparse rows.

values (nonzeros,) float32, columns (nonzeros,) int32, starts (M + 1,) int32; X (K, N), Y (M, N)
float32. The number of nonzeros is bound at run time, and each row's loop is as long as the row.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(8, 16, 32), (30, 20, 100)]


@tilelang.jit(out_idx=[-1])
def spmm(M, K, N, block_N=64):
    """Add up the rows of X that a row of S names."""
    nonzeros = T.dynamic("nonzeros")

    @T.prim_func
    def main(
        values: T.Tensor((nonzeros,), "float32"),
        columns: T.Tensor((nonzeros,), "int32"),
        starts: T.Tensor((M + 1,), "int32"),
        X: T.Tensor((K, N), "float32"),
        Y: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), M, threads=64) as (bx, row):
            acc = T.alloc_fragment((block_N,), "float32")
            T.clear(acc)
            for e in T.serial(starts[row], starts[row + 1]):
                column = columns[e]
                for j in T.Parallel(block_N):
                    acc[j] += values[e] * X[column, bx * block_N + j]
            T.copy(acc, Y[row, bx * block_N : (bx + 1) * block_N])

    return main


def check(M, K, N):
    """Compare one size with NumPy; some rows of S are empty."""
    rng = np.random.default_rng(0)
    dense = rng.integers(-3, 4, (M, K)) * (rng.random((M, K)) < 0.2)
    dense[1] = 0
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(M + 1)).astype("int32")
    x = rng.integers(-3, 4, (K, N)).astype("float32")
    values = dense[rows, columns].astype("float32")
    y = spmm(M, K, N)(values, columns.astype("int32"), starts, x)
    np.testing.assert_array_equal(y, dense @ x)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"sparse times dense: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
