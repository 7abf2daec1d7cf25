"""RMS norm of long rows: four blocks of a cluster hold a part of each row and exchange their sums.

X (M, N), Y (M, N) float32. Rows stay in shared memory between the sum and the division, so X is
read once. Each block sends its sums to all blocks; every one adds the four of them up.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 1024), (20, 1000)]


@tilelang.jit(out_idx=[-1])
def rms_norm(M, N, rows=16, parts=4, eps=1e-5):
    """Normalise `rows` rows at a time, in `parts` parts."""
    columns = T.ceildiv(N, parts * 4) * 4

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.ClusterKernel(parts, T.ceildiv(M, rows), cluster_dims=parts, threads=128) as (
            bx,
            by,
        ):
            X_shared = T.alloc_shared((rows, columns), "float32")
            mine = T.alloc_shared((rows,), "float32")
            theirs = T.alloc_shared((parts, rows), "float32")
            squares = T.alloc_fragment((rows, columns), "float32")
            part = T.alloc_fragment((rows,), "float32")
            scale = T.alloc_shared((rows,), "float32")
            rank = T.block_rank_in_cluster()

            T.copy(X[by * rows, bx * columns], X_shared)
            for i, j in T.Parallel(rows, columns):
                inside = bx * columns + j < N
                squares[i, j] = T.if_then_else(inside, X_shared[i, j] * X_shared[i, j], 0.0)
            T.reduce_sum(squares, part, dim=1)
            T.copy(part, mine)
            T.cluster_sync()
            for there in T.serial(parts):
                T.copy_cluster(mine, theirs[rank, :], dst_block=there)
            T.cluster_sync()
            for i in T.Parallel(rows):
                scale[i] = theirs[0, i]
                for sender in T.serial(1, parts):
                    scale[i] += theirs[sender, i]
                scale[i] = T.rsqrt(scale[i] / N + eps)
            for i, j in T.Parallel(rows, columns):
                if bx * columns + j < N:
                    Y[by * rows + i, bx * columns + j] = X_shared[i, j] * scale[i]

    return main


def check(M, N):
    """Compare one size with NumPy."""
    x = np.random.default_rng(0).standard_normal((M, N), "float32")
    expected = x / np.sqrt((x.astype("float64") ** 2).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(rms_norm(M, N)(x), expected, rtol=1e-5, atol=1e-6)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"RMS norm by clusters of blocks: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
