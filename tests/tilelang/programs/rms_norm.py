"""RMS norm, whole rows and rows in pieces, with a test function for each."""

import tilelang
import tilelang.language as T
import tilelang.testing
import torch


@tilelang.jit(out_idx=[-1])
def rms_norm_splitk(M, N, blk_m, blk_k):
    dtype = T.float32

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, blk_m), threads=128) as bx:
            A_shared = T.alloc_shared((blk_m, blk_k), dtype)
            A_local = T.alloc_fragment((blk_m, blk_k), dtype)
            A_powsum = T.alloc_fragment((blk_m,), dtype)
            num_k_step = T.ceildiv(N, blk_k)
            T.clear(A_local)
            for k in range(num_k_step):
                T.copy(A[bx * blk_m, k * blk_k], A_shared)
                for i, j in T.Parallel(blk_m, blk_k):
                    A_local[i, j] += A_shared[i, j] * A_shared[i, j]
            T.reduce_sum(A_local, A_powsum, dim=1)
            for i in T.Parallel(blk_m):
                A_powsum[i] = T.rsqrt(A_powsum[i] / N + 1e-12)
            for k in range(num_k_step):
                T.copy(A[bx * blk_m, (num_k_step - 1 - k) * blk_k], A_shared)
                for i, j in T.Parallel(blk_m, blk_k):
                    A_shared[i, j] *= A_powsum[i]
                T.copy(A_shared, B[bx * blk_m, (num_k_step - 1 - k) * blk_k])

    return main


@tilelang.jit
def rms_norm(A, blk_m=1):
    M = T.dynamic("m")
    N = T.const("N")
    A: T.Tensor((M, N), T.float32)
    B = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(M, blk_m), threads=128) as bx:
        A_shared = T.alloc_shared((blk_m, N), T.float32)
        A_pow_local = T.alloc_fragment((blk_m, N), T.float32)
        A_local = T.alloc_fragment((blk_m, N), T.float32)
        A_powsum = T.alloc_fragment((blk_m,), T.float32)
        T.copy(A[bx * blk_m : (bx + 1) * blk_m, :], A_shared)
        T.copy(A_shared, A_local)
        for i, j in T.Parallel(blk_m, N):
            A_pow_local[i, j] = A_local[i, j] * A_local[i, j]
        T.reduce_sum(A_pow_local, A_powsum, dim=1)
        for i in T.Parallel(blk_m):
            A_powsum[i] = T.rsqrt(A_powsum[i] / N + 1e-12)
        for i, j in T.Parallel(blk_m, N):
            A_local[i, j] *= A_powsum[i]
        T.copy(A_local, B[bx * blk_m : (bx + 1) * blk_m, :])
    return B


def ref_program(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-12)


@tilelang.testing.requires_cuda
def test_splitk():
    kernel = rms_norm_splitk(64, 512, 8, 128)
    kernel.get_profiler().assert_allclose(ref_program, rtol=0.01, atol=0.01)


@tilelang.testing.requires_cuda
def test_any_number_of_rows():
    tilelang.testing.set_random_seed(1)
    for rows in (1, 7, 64):
        x = torch.randn(rows, 192, device="cuda")
        tilelang.testing.torch_assert_close(rms_norm(x), ref_program(x), rtol=1e-3, atol=1e-3)


if __name__ == "__main__":
    tilelang.testing.main()
