"""W4A16: C = A @ dequantise(B)^T; scales and zero points of neighbouring rows lie side by side.

A (M, K) float16; B (N, K / 2) uint8, two weights per byte; scales and zeros (K / group, N). A
weight is (code - zero) * scale. Weights are the left factor, so that they go from the registers in
which they are expanded into the product.
"""

import tile_api as tile
import tile_api.language as T


@tile.jit(out_idx=[-1])
def matmul_w4a16(M, N, K, group, block_M=128, block_N=128, block_K=64, threads=256, num_stages=4):
    """Multiply; `block_K` divides `group`, so that a round needs one scale for each row."""
    assert group % block_K == 0

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((N, K // 2), "uint8"),
        scales: T.Tensor((K // group, N), "float16"),
        zeros: T.Tensor((K // group, N), "uint8"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_N, block_K // 2), "uint8")
            scale_shared = T.alloc_shared((block_N,), "float16")
            zero_shared = T.alloc_shared((block_N,), "uint8")
            B_local = T.alloc_fragment((block_N, block_K // 2), "uint8")
            W_local = T.alloc_fragment((block_N, block_K), "float16")
            Ct_local = T.alloc_fragment((block_N, block_M), "float32")

            T.clear(Ct_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                rows = bx * block_N
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[rows, k * block_K // 2], B_shared)
                T.copy(scales[k * block_K // group, rows : rows + block_N], scale_shared)
                T.copy(zeros[k * block_K // group, rows : rows + block_N], zero_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    code = (B_local[i, j // 2] >> (j % 2 * 4).astype("uint8")) & T.uint8(15)
                    offset = code.astype("int32") - zero_shared[i].astype("int32")
                    W_local[i, j] = offset.astype("float16") * scale_shared[i]
                T.gemm(W_local, A_shared, Ct_local, transpose_B=True)
            for i, j in T.Parallel(block_N, block_M):
                C[by * block_M + j, bx * block_N + i] = Ct_local[i, j]

    return main
