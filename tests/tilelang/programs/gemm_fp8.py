"""FP8 GEMM, sums promoted to float32 every second step, as large models want it."""

import tilelang
import tilelang.language as T
import torch
from tilelang.utils import map_torch_type


@tilelang.jit(out_idx=[-1])
def fp8_gemm_2xacc(M, N, K, dtype, block_M=64, block_N=32, block_K=64):
    update = 2

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "float")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            partial = T.alloc_fragment((block_M, block_N), "float")
            total = T.alloc_fragment((block_M, block_N), "float")
            T.clear(partial)
            T.clear(total)
            steps = T.ceildiv(K, block_K)
            for k in T.Pipelined(steps, num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, partial, transpose_B=True)
                if (k + 1) % update == 0:
                    for i, j in T.Parallel(block_M, block_N):
                        total[i, j] += partial[i, j]
                    T.clear(partial)
            if steps % update != 0:
                for i, j in T.Parallel(block_M, block_N):
                    total[i, j] += partial[i, j]
            T.copy(total, C[by * block_M, bx * block_N])

    return gemm


def calc_diff(x, y):
    x, y = x.double(), y.double()
    return 1 - 2 * (x * y).sum() / (x * x + y * y).sum()


def test_gemm_fp8(M, N, K, dtype):
    torch_dtype = map_torch_type(dtype)
    kernel = fp8_gemm_2xacc(M, N, K, dtype)
    a = torch.randn(M, K, dtype=torch.float16, device="cuda").to(dtype=torch_dtype)
    b = torch.randn(N, K, dtype=torch.float16, device="cuda").to(dtype=torch_dtype)
    c = kernel(a, b)
    diff = calc_diff(c, a.float() @ b.float().T)
    print(f"{dtype}: diff {diff:.2e}")
    assert diff < 1e-6


if __name__ == "__main__":
    test_gemm_fp8(128, 96, 320, "float8_e4m3fn")
    test_gemm_fp8(64, 64, 256, T.float8_e5m2)
