"""C = A + B: with sizes bound at run time, and on strided views without copying them.

A, B and C (M, N) float32. The second kernel declares its own strides, which are bound when it
is called, like its sizes.
"""

import numpy as np
import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 64), (100, 37), (1, 1)]


@tilelang.jit(out_idx=[-1])
def add(block_M=32, block_N=128, threads=256):
    """Add two matrices of any size."""
    M, N = T.dynamic("m, n")

    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float32"),
        B: T.Tensor((M, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_N), "float32")
            B_shared = T.alloc_shared((block_M, block_N), "float32")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(A[by * block_M, bx * block_N], A_shared)
            T.copy(B[by * block_M, bx * block_N], B_shared)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = A_shared[i, j] + B_shared[i, j]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit
def add_strided(block=64):
    """Add matrices whose elements may be any distance apart."""
    M, N = T.dynamic("m, n")
    a0, a1, c0, c1 = T.dynamic("a0, a1, c0, c1")

    @T.prim_func
    def main(
        A: T.StridedTensor((M, N), (a0, a1), "float32"),
        B: T.Tensor((M, N), "float32"),
        C: T.StridedTensor((M, N), (c0, c1), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), M, threads=block) as (bx, row):
            for j in T.Parallel(block):
                C[row, bx * block + j] = A[row, bx * block + j] + B[row, bx * block + j]

    return main


def check(M, N):
    """Compare both kernels with NumPy, the second on a transpose and on every other column."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-99, 99, (M, N)).astype("float32") for _ in range(2))
    np.testing.assert_array_equal(add()(a, b), a + b)
    transposed = torch.from_numpy(np.ascontiguousarray(a.T)).T
    spread = torch.full((M, 2 * N), -1.0)
    add_strided()(transposed, torch.from_numpy(b), spread[:, ::2])
    np.testing.assert_array_equal(spread[:, ::2], a + b)
    assert (spread[:, 1::2] == -1).all()


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"addition of run-time sizes and strides: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
