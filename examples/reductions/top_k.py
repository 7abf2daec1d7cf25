"""The k largest of each row with their positions, as a router of experts needs them.

logits (M, N) float32; values (M, k) float32; indices (M, k) int32. Each round takes the
maximum, finds the first position that has it, and removes that position.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 32, 2), (45, 100, 6), (3, 5, 5)]


@tilelang.jit(out_idx=[1, 2])
def top_k(M, N, k, block_M=16):
    """Return values in descending order and where they are; ties go to the left."""

    @T.prim_func
    def main(
        logits: T.Tensor((M, N), "float32"),
        values: T.Tensor((M, k), "float32"),
        indices: T.Tensor((M, k), "int32"),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            rest = T.alloc_fragment((block_M, N), "float32")
            place = T.alloc_fragment((block_M, N), "int32")
            highest = T.alloc_fragment((block_M,), "float32")
            where = T.alloc_fragment((block_M,), "int32")
            T.copy(logits[bx * block_M, 0], rest)
            for r in T.serial(k):
                T.reduce_max(rest, highest, dim=1, clear=True)
                for i, j in T.Parallel(block_M, N):
                    place[i, j] = T.if_then_else(rest[i, j] == highest[i], j, N)
                T.reduce_min(place, where, dim=1, clear=True)
                for i, j in T.Parallel(block_M, N):
                    rest[i, j] = T.if_then_else(j == where[i], -T.infinity("float32"), rest[i, j])
                for i in T.Parallel(block_M):
                    values[bx * block_M + i, r] = highest[i]
                    indices[bx * block_M + i, r] = where[i]

    return main


def check(M, N, k):
    """Compare one size with NumPy; few distinct numbers make ties common."""
    logits = np.random.default_rng(0).integers(0, 20, (M, N)).astype("float32")
    values, indices = top_k(M, N, k)(logits)
    expected = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, 1))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"top-k: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
