"""One compiled GEMM for all shapes, and a table of times for some of them."""

import tilelang
import tilelang.language as T
import torch

m = T.dynamic("m")
n = T.dynamic("n")
k = T.dynamic("k")


@tilelang.jit(pass_configs={"tl.disable_warp_specialized": True, "tl.disable_tma_lower": True})
def matmul_dynamic(block_M, block_N, block_K, trans_A, trans_B, dtype):
    A_shape = (k, m) if trans_A else (m, k)
    B_shape = (n, k) if trans_B else (k, n)
    A_shared_shape = (block_K, block_M) if trans_A else (block_M, block_K)
    B_shared_shape = (block_N, block_K) if trans_B else (block_K, block_N)

    @T.prim_func
    def dynamic_matmul(
        A: T.Tensor(A_shape, dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((m, n), dtype)
    ):
        with T.Kernel(T.ceildiv(n, block_N), T.ceildiv(m, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared(A_shared_shape, dtype)
            B_shared = T.alloc_shared(B_shared_shape, dtype)
            C_local = T.alloc_fragment((block_M, block_N), T.float32)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, block_K), num_stages=2):
                if trans_A:
                    T.copy(A[ko * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, ko * block_K], B_shared)
                else:
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, trans_A, trans_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return dynamic_matmul


for trans_A, trans_B in ((False, False), (False, True), (True, False)):
    kernel = matmul_dynamic(64, 64, 32, trans_A, trans_B, T.float16)
    for M, N, K in ((64, 64, 64), (100, 37, 50), (1, 130, 96)):
        A = torch.rand(M, K, device="cuda", dtype=torch.float16)
        B = torch.rand(K, N, device="cuda", dtype=torch.float16)
        C = torch.empty(M, N, device="cuda", dtype=torch.float16)
        kernel(A.T.contiguous() if trans_A else A, B.T.contiguous() if trans_B else B, C)
        torch.testing.assert_close(C, A @ B, rtol=1e-2, atol=1e-2)
profiler = kernel.get_profiler()
latency = profiler.do_bench(
    warmup=1, rep=2, dynamic_symbolic_constraints={"m": 64, "n": 64, "k": 64}
)
print(f"dynamic GEMM: all shapes match, {latency:.3f} ms")
