"""Grouped GEMM: consecutive rows of A are multiplied by different matrices.

A (rows, K), B (groups, K, N), C (rows, N) float16; sizes (groups,) int32 says how many rows
belong to each group. Groups are padded to whole blocks in the grid, not in memory: a block
finds its group, and leaves alone what is not its own.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [([32, 64], 32, 64), ([5, 0, 70, 33], 50, 40)]


@tilelang.jit(out_idx=[-1])
def grouped_gemm(
    groups, blocks, N, K, block_M=32, block_N=32, block_K=32, threads=128, num_stages=2
):
    """Multiply every group of rows by its own matrix; `blocks` covers all padded groups."""
    rows = T.dynamic("rows")
    dtype = "float16"

    @T.prim_func
    def main(
        A: T.Tensor((rows, K), dtype),
        B: T.Tensor((groups, K, N), dtype),
        sizes: T.Tensor((groups,), "int32"),
        C: T.Tensor((rows, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), blocks, threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            group = T.alloc_var("int32", init=0)
            first = T.alloc_var("int32", init=0)  # row of A where the group begins
            before = T.alloc_var("int32", init=0)  # blocks of earlier groups
            while before + T.ceildiv(sizes[group], block_M) <= by:
                before = before + T.ceildiv(sizes[group], block_M)
                first = first + sizes[group]
                group = group + 1
            start = (by - before) * block_M
            own = T.min(block_M, sizes[group] - start)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[first + start, k * block_K], A_shared)
                T.copy(B[group, k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                if i < own:
                    C[first + start + i, bx * block_N + j] = C_local[i, j]

    return main


def check(sizes, N, K, block_M=32, **tiles):
    """Compare one set of groups with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (sum(sizes), K)).astype("float16")
    b = rng.integers(-2, 3, (len(sizes), K, N)).astype("float16")
    blocks = sum(-(-size // block_M) for size in sizes)
    kernel = grouped_gemm(len(sizes), blocks, N, K, block_M, **tiles)
    c = kernel(a, b, np.array(sizes, "int32"))
    first = 0
    for group, size in enumerate(sizes):
        part = slice(first, first + size)
        expected = a[part].astype("float32") @ b[group].astype("float32")
        np.testing.assert_array_equal(c[part], expected)
        first += size


def main():
    """Check all sets of groups."""
    for size in SIZES:
        check(*size)
    print(f"grouped GEMM: {len(SIZES)} sets of groups agree with NumPy")


if __name__ == "__main__":
    main()
