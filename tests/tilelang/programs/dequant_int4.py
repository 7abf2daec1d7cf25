"""Weight-only INT4: unpack in registers, then multiply; checked with the profiler."""

import tilelang
import tilelang.language as T
import torch


def matmul(M, N, K, block_M, block_N, block_K, in_dtype, out_dtype, accum_dtype, num_bits=4):
    num_elems_per_byte = 8 // num_bits
    storage_dtype = T.uint8
    B_shape = (N, K // num_elems_per_byte)
    B_shared_shape = (block_N, block_K // num_elems_per_byte)
    B_dequantize_shape = (block_N, block_K)

    def to_float(nbit: int, val: T.PrimExpr, pos: T.PrimExpr, dtype: str):
        assert nbit == 4
        mask = T.Cast(storage_dtype, (1 << nbit) - 1)
        shifted = T.shift_right(val, (pos * nbit).astype(storage_dtype))
        code = T.bitwise_and(shifted, mask)
        return T.Cast(dtype, code) - T.Cast(dtype, 8)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), in_dtype),
        B: T.Tensor(B_shape, storage_dtype),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), in_dtype)
            B_shared = T.alloc_shared(B_shared_shape, storage_dtype)
            B_local = T.alloc_fragment(B_shared_shape, storage_dtype)
            B_dequantize_local = T.alloc_fragment(B_dequantize_shape, in_dtype)
            B_dequantize_shared = T.alloc_shared(B_dequantize_shape, in_dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // num_elems_per_byte], B_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    B_dequantize_local[i, j] = to_float(
                        num_bits, B_local[i, j // 2], j % 2, in_dtype
                    )
                T.copy(B_dequantize_local, B_dequantize_shared)
                T.gemm(A_shared, B_dequantize_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def run_gemm(M=64, N=96, K=128):
    program = matmul(M, N, K, 32, 32, 64, T.float16, T.float16, T.float32)
    kernel = tilelang.compile(program, out_idx=[2])
    profiler = kernel.get_profiler(tilelang.TensorSupplyType.Integer)

    def ref_program(A, qB):
        low = (qB & 15).to(torch.int32) - 8
        high = (qB >> 4).to(torch.int32) - 8
        B = torch.stack([low, high], -1).reshape(N, K).half()
        return torch.matmul(A.float(), B.float().T).half()

    profiler.assert_allclose(ref_program)
    qB = torch.randint(0, 256, (N, K // 2), dtype=torch.uint8, device="cuda")
    A = torch.randint(-2, 3, (M, K), device="cuda").half()
    torch.testing.assert_close(kernel(A, qB), ref_program(A, qB))


if __name__ == "__main__":
    run_gemm()
    print("INT4 weights: passed")
