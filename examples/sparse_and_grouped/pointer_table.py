"""Grouped GEMM through a table of addresses: C[g] = A[g] @ B, each A somewhere else in memory.

pointers (groups,) holds the address of each A (M, K) float32; B (K, N), C (groups, M, N).
"""

import numpy as np
import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(2, 32, 32, 32), (3, 40, 50, 70)]


@tilelang.jit(out_idx=[-1])
def pointer_gemm(groups, M, N, K, block=32):
    """Multiply matrices that are known by their addresses."""

    @T.prim_func
    def main(
        pointers: T.Tensor((groups,), T.ptr),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((groups, M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), groups, threads=128) as (bx, by, g):
            A = T.make_tensor(pointers[g], (M, K), "float32")
            A_shared = T.alloc_shared((block, block), "float32")
            B_shared = T.alloc_shared((block, block), "float32")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, k * block], A_shared)
                T.copy(B[k * block, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[g, by * block, bx * block])

    return main


def check(groups, M, N, K):
    """Compare one size with NumPy."""
    torch.manual_seed(0)
    matrices = [torch.randint(-3, 4, (M, K)).float() for _ in range(groups)]
    b = torch.randint(-3, 4, (K, N)).float()
    pointers = torch.tensor([a.data_ptr() for a in matrices], dtype=torch.int64)
    c = pointer_gemm(groups, M, N, K)(pointers, b)
    for found, a in zip(c, matrices, strict=True):
        np.testing.assert_array_equal(found, a @ b)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"grouped GEMM through pointers: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
