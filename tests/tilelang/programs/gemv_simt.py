"""GEMV by hand: each thread multiplies a few numbers, a warp adds up."""

import tilelang
import tilelang.language as T
import torch
from tvm import DataType


@tilelang.jit(out_idx=[-1])
def splitk_gemv_vectorized(N, K, BLOCK_N, reduce_threads, dtype="float16", accum_dtype="float"):
    MAX_TRANSACTION_SIZE_IN_BITS = 128
    TILE_K = MAX_TRANSACTION_SIZE_IN_BITS // DataType(dtype).bits
    BLOCK_K = reduce_threads * TILE_K

    @T.prim_func
    def main(
        A: T.Tensor((K,), dtype),
        B: T.Tensor((N, K), dtype),
        C: T.Tensor((N,), dtype),
    ):
        with T.Kernel(T.ceildiv(N, BLOCK_N), threads=(BLOCK_N, reduce_threads)) as bn:
            tn = T.get_thread_binding(0)
            tk = T.get_thread_binding(1)
            A_local = T.alloc_local((TILE_K,), dtype)
            B_local = T.alloc_local((TILE_K,), dtype)
            C_shared = T.alloc_shared((BLOCK_N,), accum_dtype)
            C_accum = T.alloc_local((1,), accum_dtype)
            if tk == 0:
                C_shared[tn] = 0
            T.clear(C_accum)
            T.sync_threads()
            for bk in T.serial(T.ceildiv(K, BLOCK_K)):
                for k in T.vectorized(TILE_K):
                    A_local[k] = A[bk * BLOCK_K + tk * TILE_K + k]
                    B_local[k] = B[bn * BLOCK_N + tn, bk * BLOCK_K + tk * TILE_K + k]
                for k in T.serial(TILE_K):
                    C_accum[0] += A_local[k].astype(accum_dtype) * B_local[k].astype(accum_dtype)
            T.atomic_add(C_shared[tn], C_accum[0])
            T.sync_threads()
            if tk == 0:
                C[bn * BLOCK_N + tn] = C_shared[tn]

    return main


kernel = splitk_gemv_vectorized(32, 256, 4, 16)
a = torch.randint(-2, 3, (256,), device="cuda").half()
b = torch.randint(-2, 3, (32, 256), device="cuda").half()
torch.testing.assert_close(kernel(a, b), (b.float() @ a.float()).half())
print("GEMV with 4 x 16 threads: ok")
