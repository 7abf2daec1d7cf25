"""MXFP4 weights: E2M1 codes and a power-of-two scale for every 32 of them, into bfloat16."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def mxfp4_matmul(M, N, K, block_M=32, block_N=32, block_K=64, scale_size=32, threads=128):
    @T.macro
    def dequant(B_shared, scale_shared, B_dequant, k):
        for i, j in T.Parallel(block_N, block_K):
            code = (B_shared[i, j // 2] >> (j % 2 * 4).astype("uint8")) & T.uint8(0xF)
            sign = (code >> T.uint8(3)).astype("uint16") << T.uint16(15)
            exponent = ((code >> T.uint8(1)) & T.uint8(3)).astype("uint16")
            mantissa = (code & T.uint8(1)).astype("uint16")
            normal = ((exponent + T.uint16(126)) << T.uint16(7)) | (mantissa << T.uint16(6))
            small = T.if_then_else(mantissa == 1, T.uint16(0x3F00), T.uint16(0))
            bits = sign | T.if_then_else(exponent == 0, small, normal)
            B_dequant[i, j] = T.reinterpret(bits, "bfloat16") * T.exp2(
                scale_shared[i, j // scale_size].astype("float32") - 127.0
            )

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"),
        B: T.Tensor((N, K // 2), "uint8"),
        Scale: T.Tensor((N, K // scale_size), "uint8"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "bfloat16")
            B_shared = T.alloc_shared((block_N, block_K // 2), "uint8")
            scale_shared = T.alloc_shared((block_N, block_K // scale_size), "uint8")
            B_dequant = T.alloc_shared((block_N, block_K), "bfloat16")
            C_local = T.alloc_fragment((block_M, block_N), "float")
            T.clear(C_local)
            for k in T.Pipelined(K // block_K, num_stages=1):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // 2], B_shared)
                T.copy(Scale[bx * block_N, k * block_K // scale_size], scale_shared)
                dequant(B_shared, scale_shared, B_dequant, k)
                T.gemm(A_shared, B_dequant, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


TABLE = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def torch_dequant(codes, scale):
    table = torch.tensor(TABLE + [-x for x in TABLE], device=codes.device)
    both = torch.stack([codes & 15, codes >> 4], -1).flatten(1).long()
    return table[both] * torch.exp2(scale.float() - 127).repeat_interleave(32, 1)


torch.manual_seed(0)
M, N, K = 48, 64, 128
a = torch.randn(M, K, device="cuda").bfloat16()
b = torch.randint(0, 256, (N, K // 2), device="cuda", dtype=torch.uint8)
scale = torch.randint(120, 128, (N, K // 32), device="cuda", dtype=torch.uint8)
c = mxfp4_matmul(M, N, K)(a, b, scale)
expected = a.float() @ torch_dequant(b, scale).T
torch.testing.assert_close(c.float(), expected, rtol=2e-2, atol=2e-2)
print("MXFP4 weights: all checks pass")
