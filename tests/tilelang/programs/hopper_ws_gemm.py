"""A warp-specialised GEMM for Hopper: one group fetches by TMA, the other multiplies."""

import tilelang
import tilelang.language as T
import torch

tilelang.disable_cache()


@tilelang.jit(out_idx=[2], pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def matmul_warp_specialize(M, N, K, block_M=64, block_N=64, block_K=64, stages=2):
    dtype, accum_dtype = "float16", "float"

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=256) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), dtype)
            B_shared = T.alloc_shared((stages, block_K, block_N), dtype)
            C_shared = T.alloc_shared((block_M, block_N), dtype)
            loaded = T.alloc_barrier([128] * stages)
            computed = T.alloc_barrier([128] * stages)

            with T.ws(1):
                for ko in range(T.ceildiv(K, block_K)):
                    T.mbarrier_wait_parity(computed[ko % stages], ((ko // stages) % 2) ^ 1)
                    T.tma_copy(
                        A[by * block_M, ko * block_K],
                        A_shared[ko % stages, :, :],
                        barrier=loaded[ko % stages],
                    )
                    T.tma_copy(
                        B[ko * block_K, bx * block_N],
                        B_shared[ko % stages, :, :],
                        barrier=loaded[ko % stages],
                    )
                    T.mbarrier_arrive(loaded[ko % stages])
            with T.ws(0):
                C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
                T.clear(C_local)
                for ko in range(T.ceildiv(K, block_K)):
                    T.mbarrier_wait_parity(loaded[ko % stages], (ko // stages) % 2)
                    T.gemm(A_shared[ko % stages, :, :], B_shared[ko % stages, :, :], C_local)
                    T.mbarrier_arrive(computed[ko % stages])
                T.copy(C_local, C_shared)
                T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


def main(M=128, N=64, K=192):
    if torch.cuda.get_device_capability() != (9, 0):
        raise SystemExit("this program is for Hopper")
    kernel = matmul_warp_specialize(M, N, K)
    a = torch.randint(-2, 3, (M, K), device="cuda").half()
    b = torch.randint(-2, 3, (K, N), device="cuda").half()
    torch.testing.assert_close(kernel(a, b), a @ b)
    source = kernel.get_kernel_source()
    assert "wgmma" in source or "mbarrier" in source
    print("warp specialisation: ok")


if __name__ == "__main__":
    main()
