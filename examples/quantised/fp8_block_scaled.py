"""Block-scaled FP8 GEMM: C = (A * scale_A) @ (B * scale_B)^T.

A (M, K) and B (N, K) float8_e4m3fn; scale_A (M, K / 128) per token and group; scale_B
(N / 128, K / 128) per square block; C (M, N) bfloat16. Every step along K is summed on its
own and scaled into the total, which keeps the small sums of FP8 hardware harmless.
"""

import torch

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 128, 128), (70, 256, 384)]
GROUP = 128


@tilelang.jit(out_idx=[-1])
def gemm_fp8_block_scaled(M, N, K, block_M=64, block_N=64, threads=128, num_stages=4):
    """Multiply FP8 matrices with scales for groups of 128."""
    steps = K // GROUP

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float8_e4m3fn"),
        B: T.Tensor((N, K), "float8_e4m3fn"),
        scale_A: T.Tensor((M, K // GROUP), "float32"),
        scale_B: T.Tensor((N // GROUP, K // GROUP), "float32"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(N // block_N, T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, GROUP), "float8_e4m3fn")
            B_shared = T.alloc_shared((block_N, GROUP), "float8_e4m3fn")
            scale_shared = T.alloc_shared((block_M,), "float32")
            C_step = T.alloc_fragment((block_M, block_N), "float32")
            C_local = T.alloc_fragment((block_M, block_N), "float32")

            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(A[by * block_M, k * GROUP], A_shared)
                T.copy(B[bx * block_N, k * GROUP], B_shared)
                factor = scale_B[bx * block_N // GROUP, k]
                for i in T.Parallel(block_M):
                    scale_shared[i] = scale_A[by * block_M + i, k] * factor
                T.gemm(A_shared, B_shared, C_step, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] += C_step[i, j] * scale_shared[i]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def check(M, N, K, **tiles):
    """Compare one size with torch."""
    torch.manual_seed(0)
    a, b = torch.randn(M, K).to(torch.float8_e4m3fn), torch.randn(N, K).to(torch.float8_e4m3fn)
    scale_a = torch.rand(M, K // GROUP) + 0.5
    scale_b = torch.rand(N // GROUP, K // GROUP) + 0.5
    wide_a = a.float() * scale_a.repeat_interleave(GROUP, 1)
    wide_b = b.float() * scale_b.repeat_interleave(GROUP, 0).repeat_interleave(GROUP, 1)
    c = gemm_fp8_block_scaled(M, N, K, **tiles)(a, b, scale_a, scale_b)
    torch.testing.assert_close(c, (wide_a @ wide_b.T).bfloat16(), rtol=2e-2, atol=1e-2)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"block-scaled FP8 GEMM: {len(SIZES)} sizes agree with torch")


if __name__ == "__main__":
    main()
