"""A persistent GEMM with as many blocks as the GPU has multiprocessors."""

import tilelang
import tilelang.language as T
import torch
from tilelang.carver.arch import driver


@tilelang.jit(out_idx=[2], pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def matmul_persistent(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, num_sms=8):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), T.bfloat16),
        B: T.Tensor((N, K), T.bfloat16),
        C: T.Tensor((M, N), T.bfloat16),
    ):
        with T.Kernel(num_sms, threads=128) as block_id:
            A_shared = T.alloc_shared((block_M, block_K), T.bfloat16)
            B_shared = T.alloc_shared((block_N, block_K), T.bfloat16)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)
            C_shared = T.alloc_shared((block_M, block_N), T.bfloat16)
            domain = [T.ceildiv(M, block_M), T.ceildiv(N, block_N)]
            for bx, by in T.Persistent(domain, num_sms, block_id, group_size=4):
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[bx * block_M, k * block_K], A_shared)
                    T.copy(B[by * block_N, k * block_K], B_shared)
                    T.gemm(A_shared, B_shared, C_local, transpose_B=True)
                T.copy(C_local, C_shared)
                T.copy(C_shared, C[bx * block_M, by * block_N])

    return main


def main():
    torch.manual_seed(42)
    M, N, K = 200, 260, 96
    num_sms = min(driver.get_num_sms(), 8)
    kernel = matmul_persistent(M, N, K, num_sms=num_sms)
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda a, b: a @ b.T, rtol=2e-2, atol=2e-2)
    print(f"persistent on {num_sms} SMs: all checks pass")


if __name__ == "__main__":
    main()
