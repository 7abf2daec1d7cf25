"""int8 x int8 -> int32, compiled with tilelang.compile, then scaled on the way out."""

import tilelang
import tilelang.language as T
import torch

tilelang.disable_cache()


def int8_gemm(M, N, K, block_M=64, block_N=64, block_K=64):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "int8"),
        B: T.Tensor((N, K), "int8"),
        scale_a: T.Tensor((M,), "float32"),
        scale_b: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "int8")
            B_shared = T.alloc_shared((block_N, block_K), "int8")
            acc = T.alloc_fragment((block_M, block_N), "int32")
            out = T.alloc_fragment((block_M, block_N), "bfloat16")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                out[i, j] = acc[i, j] * scale_a[by * block_M + i] * scale_b[bx * block_N + j]
            T.copy(out, C[by * block_M, bx * block_N])

    return main


kernel = tilelang.compile(int8_gemm(128, 192, 256), out_idx=-1, target="cuda")
a = torch.randint(-128, 128, (128, 256), dtype=torch.int8, device="cuda")
b = torch.randint(-128, 128, (192, 256), dtype=torch.int8, device="cuda")
sa = torch.rand(128, device="cuda") / 100
sb = torch.rand(192, device="cuda") / 100
exact = (a.cpu().int() @ b.cpu().int().T).cuda()
ref = (exact.float() * sa[:, None] * sb[None, :]).bfloat16()
torch.testing.assert_close(kernel(a, b, sa, sb), ref, rtol=1e-2, atol=1e-2)
print("int8 GEMM with scales passes")
