"""A GEMM whose blocks name the threads of a warp: async copies, groups, and their waits."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[2])
def matmul_async(M, N, K, block=32, block_K=32, stages=2):
    steps = K // block_K

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((stages, block, block_K), "float16")
            B_shared = T.alloc_shared((stages, block, block_K), "float16")
            acc = T.alloc_fragment((block, block), "float32")
            T.clear(acc)
            T.async_copy(A[by * block, 0], A_shared[0, :, :])
            T.async_copy(B[bx * block, 0], B_shared[0, :, :])
            T.ptx_commit_group()
            for k in T.serial(steps):
                if k + 1 < steps:
                    T.async_copy(A[by * block, (k + 1) * block_K], A_shared[(k + 1) % stages, :, :])
                    T.async_copy(B[bx * block, (k + 1) * block_K], B_shared[(k + 1) % stages, :, :])
                T.ptx_commit_group()
                T.ptx_wait_group(1)
                T.sync_threads()
                T.gemm(
                    A_shared[k % stages, :, :], B_shared[k % stages, :, :], acc, transpose_B=True
                )
                T.sync_threads()
            T.copy(acc, C[by * block, bx * block])

    return main


major, minor = torch.cuda.get_device_capability()
assert major >= 8, f"needs cp.async, and this is sm_{major}{minor}"
kernel = matmul_async(64, 32, 128)
a = torch.randint(-2, 3, (64, 128), device="cuda").half()
b = torch.randint(-2, 3, (32, 128), device="cuda").half()
torch.testing.assert_close(kernel(a, b), a @ b.T)
print("copies in flight: ok")
