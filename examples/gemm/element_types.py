"""One GEMM text for many element types: C = A @ B^T, A (M, K), B (N, K), C (M, N).

The element types of the operands, of the accumulator and of the result are compile-time values.
"""

import numpy as np
import torch

import tile_api as tilelang
import tile_api.language as T

M, N, K = 70, 50, 96
SIZES = [
    (T.int8, T.int32, T.int32),
    (T.float16, T.float32, T.float16),
    (T.float16, T.float16, T.float16),
    (T.bfloat16, T.float32, T.bfloat16),
    (T.float8_e4m3fn, T.float32, T.float16),
    (T.float8_e5m2, T.float32, T.float32),
    (T.float64, T.float64, T.float64),
]


@tilelang.jit(out_idx=[-1])
def matmul_nt(M, N, K, in_dtype, accum_dtype, out_dtype, block=64, block_K=32):
    """Multiply with the B operand stored as (N, K), as weights usually are."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), in_dtype),
        B: T.Tensor((N, K), in_dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, block_K), in_dtype)
            B_shared = T.alloc_shared((block, block_K), in_dtype)
            C_local = T.alloc_fragment((block, block), accum_dtype)
            C_shared = T.alloc_shared((block, block), out_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block, k * block_K], A_shared)
                T.copy(B[bx * block, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block, bx * block])

    return main


def check(in_dtype, accum_dtype, out_dtype):
    """Compare one choice of types with torch; the operands are integers all types hold."""
    generator = torch.Generator().manual_seed(0)
    a, b = (
        torch.randint(-2, 3, (rows, K), generator=generator).to(in_dtype.as_torch())
        for rows in (M, N)
    )
    c = matmul_nt(M, N, K, in_dtype, accum_dtype, out_dtype)(a, b)
    exact = a.double() @ b.double().T
    assert c.dtype is out_dtype.as_torch()
    np.testing.assert_array_equal(c.double().numpy(), exact.to(c.dtype).double().numpy())


def main():
    """Check all types."""
    for types in SIZES:
        check(*types)
    print(f"GEMM: {len(SIZES)} combinations of element types agree with torch")


if __name__ == "__main__":
    main()
