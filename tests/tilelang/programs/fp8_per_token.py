"""Cast to FP8 per token and group of 128, and a GEMM that scales groups back."""

from typing import Tuple

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[1, 2])
def per_token_cast_to_fp8(M, N, blk_m):
    group_size = 128
    fp8_min, fp8_max = -448.0, 448.0

    @T.prim_func
    def per_token_cast(
        X: T.Tensor((M, N), T.float32),
        X_fp8: T.Tensor((M, N), T.float8_e4m3fn),
        X_amax: T.Tensor((M, T.ceildiv(N, group_size)), T.float32),
    ):
        with T.Kernel(T.ceildiv(M, blk_m), T.ceildiv(N, group_size), threads=128) as (bx, by):
            y_local = T.alloc_fragment((blk_m, group_size), T.float32)
            y_amax_local = T.alloc_fragment((blk_m,), T.float32)
            y_s_local = T.alloc_fragment((blk_m,), T.float32)
            y_q_local = T.alloc_fragment((blk_m, group_size), T.float32)
            y_q_local_fp8 = T.alloc_fragment((blk_m, group_size), T.float8_e4m3fn)
            T.copy(
                X[bx * blk_m : (bx + 1) * blk_m, by * group_size : (by + 1) * group_size], y_local
            )
            T.reduce_absmax(y_local, y_amax_local, dim=1)
            for i in T.Parallel(blk_m):
                y_amax_local[i] = T.max(y_amax_local[i], 1e-4)
                y_s_local[i] = y_amax_local[i] / fp8_max
            for i, j in T.Parallel(blk_m, group_size):
                y_q_local[i, j] = T.clamp(y_local[i, j] / y_s_local[i], fp8_min, fp8_max)
            T.copy(y_q_local, y_q_local_fp8)
            for i in T.Parallel(blk_m):
                X_amax[bx * blk_m + i, by] = y_s_local[i]
            T.copy(
                y_q_local_fp8,
                X_fp8[bx * blk_m : (bx + 1) * blk_m, by * group_size : (by + 1) * group_size],
            )

    return per_token_cast


@tilelang.jit(out_idx=[4])
def scaled_gemm(M, N, K, block=32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), T.float8_e4m3fn),
        B: T.Tensor((N, K), T.float8_e4m3fn),
        a_scale: T.Tensor((M, K // 128), T.float32),
        b_scale: T.Tensor((N, K // 128), T.float32),
        C: T.Tensor((M, N), T.bfloat16),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, 128), T.float8_e4m3fn)
            b = T.alloc_shared((block, 128), T.float8_e4m3fn)
            part = T.alloc_fragment((block, block), T.float32)
            acc = T.alloc_fragment((block, block), T.float32)
            T.clear(acc)
            for k in T.Pipelined(K // 128, num_stages=2):
                T.copy(A[by * block, k * 128], a)
                T.copy(B[bx * block, k * 128], b)
                T.gemm(a, b, part, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block, block):
                    acc[i, j] += (
                        part[i, j] * a_scale[by * block + i, k] * b_scale[bx * block + j, k]
                    )
            T.copy(acc, C[by * block, bx * block])

    return main


def ref_per_token_cast(x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    m, n = x.shape
    x_view = x.view(m, -1, 128)
    x_amax = x_view.abs().float().amax(dim=2).view(m, -1).clamp(1e-4)
    x_fp8 = (x_view * (448.0 / x_amax.unsqueeze(2))).to(torch.float8_e4m3fn)
    return x_fp8.view(m, n), x_amax / 448.0


torch.manual_seed(0)
M, N, K = 48, 64, 384
x = torch.randn(M, K, device="cuda", dtype=torch.float32)
w = torch.randn(N, K, device="cuda", dtype=torch.float32)
x_fp8, x_scale = per_token_cast_to_fp8(M, K, 8)(x)
w_fp8, w_scale = per_token_cast_to_fp8(N, K, 8)(w)
ref_fp8, ref_scale = ref_per_token_cast(x)
torch.testing.assert_close(x_fp8.float(), ref_fp8.float(), rtol=0.13, atol=0)
torch.testing.assert_close(x_scale, ref_scale, rtol=1e-5, atol=1e-6)
y = scaled_gemm(M, N, K)(x_fp8, w_fp8, x_scale, w_scale)
error = (y.float() - x @ w.T).norm() / (x @ w.T).norm()
print(f"relative error of the product: {error:.4f}")
assert error < 0.06
