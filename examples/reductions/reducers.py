"""Mean and variance of columns with reducers: accumulators that threads update as they like.

X (M, N) float32, mean and variance (N,) float32. Each update counts once, however the reducer
is spread over threads.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 32), (100, 70)]


@tilelang.jit(out_idx=[1, 2])
def column_moments(M, N, block_M=32, block_N=32):
    """Sum values and squares over all rows."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        mean: T.Tensor((N,), "float32"),
        variance: T.Tensor((N,), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bx:
            x = T.alloc_shared((block_M, block_N), "float32")
            sums = T.alloc_reducer((block_N,), "float32", op="sum")
            squares = T.alloc_reducer((block_N,), "float32", op="sum")
            first = T.alloc_fragment((block_N,), "float32")
            second = T.alloc_fragment((block_N,), "float32")
            T.reducer_init(sums)
            T.reducer_init(squares)
            for k in T.Pipelined(T.ceildiv(M, block_M), num_stages=2):
                T.copy(X[k * block_M, bx * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    T.reducer_update(sums[j], x[i, j])
                    T.reducer_update(squares[j], x[i, j] * x[i, j])
            T.finalize_reducer(sums, first)
            T.finalize_reducer(squares, second)
            for j in T.Parallel(block_N):
                first[j] /= M
                second[j] = second[j] / M - first[j] * first[j]
            T.copy(first, mean[bx * block_N])
            T.copy(second, variance[bx * block_N])

    return main


def check(M, N):
    """Compare one size with NumPy."""
    x = np.random.default_rng(0).standard_normal((M, N), "float32")
    mean, variance = column_moments(M, N)(x)
    np.testing.assert_allclose(mean, x.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(variance, x.var(0), rtol=1e-4, atol=1e-5)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"moments of columns with reducers: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
