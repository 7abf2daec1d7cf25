"""Split-K: several blocks share one tile of C and add to it atomically."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def matmul_splitk(M, N, K, block_M, block_N, block_K, split_k):
    splitK = K // split_k

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), split_k, threads=128) as (
            bx,
            by,
            bz,
        ):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_N, block_K), "float16")
            C_shared = T.alloc_shared((block_M, block_N), "float")
            C_local = T.alloc_fragment((block_M, block_N), "float")

            if bz == 0:
                T.clear(C_local)
            else:
                T.fill(C_local, 0.0)
            for ko in T.Pipelined(T.ceildiv(splitK, block_K), num_stages=2):
                T.copy(A[by * block_M, bz * splitK + ko * block_K], A_shared)
                T.copy(B[bx * block_N, bz * splitK + ko * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C_shared)
            for i, j in T.Parallel(block_M, block_N):
                T.atomic_add(C[by * block_M + i, bx * block_N + j], C_shared[i, j])

    return main


def run(M=128, N=96, K=256, split_k=4):
    kernel = matmul_splitk(M, N, K, 64, 32, 32, split_k)
    a = torch.randint(-3, 4, (M, K), dtype=torch.float16, device="cuda")
    b = torch.randint(-3, 4, (N, K), dtype=torch.float16, device="cuda")
    c = torch.zeros(M, N, dtype=torch.float32, device="cuda")
    kernel(a, b, c)
    assert torch.equal(c, a.float() @ b.float().t())
    print("split-K matches.")


if __name__ == "__main__":
    run()
