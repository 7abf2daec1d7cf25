"""C = A @ B in bfloat16, written for the memory of a GPU; M is known only at run time.

Shared tiles have bank-swizzled layouts, blocks run in panels (threadblock swizzle), warps split the
rows, and the result leaves through shared memory. None of this changes a number.
"""

import torch

import tile_api as tilelang
import tile_api.language as T
from tile_api.language import make_swizzled_layout

SIZES = [(128, 128, 64), (200, 320, 136), (1, 64, 72)]


@tilelang.jit(out_idx=[-1])
def matmul(N, K, block_M=128, block_N=128, block_K=64, num_stages=3, threads=256):
    """Multiply; the number of rows is bound when the kernel is called."""
    M = T.dynamic("m")
    dtype = "bfloat16"

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_shared = T.alloc_shared((block_M, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.annotate_layout(
                {
                    A_shared: make_swizzled_layout(A_shared),
                    B_shared: make_swizzled_layout(B_shared),
                    C_shared: make_swizzled_layout(C_shared),
                }
            )
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


def check(M, N, K):
    """Compare one size with torch."""
    torch.manual_seed(0)
    a = torch.randint(-2, 3, (M, K)).bfloat16()
    b = torch.randint(-2, 3, (K, N)).bfloat16()
    expected = (a.float() @ b.float()).bfloat16()
    torch.testing.assert_close(matmul(N, K)(a, b), expected, rtol=0, atol=0)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM with swizzled layouts and run-time rows: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
