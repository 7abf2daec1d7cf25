"""Block-scaled float8: C = (A * scale_A) @ (B * scale_B)^T.

A (M, K) and B (N, K) float8_e4m3fn; scale_A (M, K / 128) per token and group, scale_B (N / 128,
K / 128) per square block. Every step along K is summed on its own and scaled into the total.
"""

import tile_api as tile
import tile_api.language as T

GROUP = 128


@tile.jit(out_idx=[-1])
def gemm_fp8(M, N, K, block_M=128, block_N=128, threads=256, num_stages=4, panel=8):
    """Multiply; tiles of B lie within a block that shares a scale."""

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

            T.use_swizzle(panel_size=panel)
            T.clear(C_local)
            for k in T.Pipelined(K // GROUP, num_stages=num_stages):
                T.copy(A[by * block_M, k * GROUP], A_shared)
                T.copy(B[bx * block_N, k * GROUP], B_shared)
                for i in T.Parallel(block_M):
                    scale_shared[i] = (
                        scale_A[by * block_M + i, k] * scale_B[bx * block_N // GROUP, k]
                    )
                T.gemm(A_shared, B_shared, C_step, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] += C_step[i, j] * scale_shared[i]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main
