"""Grouped GEMM: experts of different sizes in one launch, padded in the grid."""

import math

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[2])
def grouped_gemm(batch_sizes_list, K, N, block_M, block_N, block_K, num_stages=2, threads=128):
    batch_sum = sum(batch_sizes_list)
    batch_count = len(batch_sizes_list)
    total_m_blocks = sum((size + block_M - 1) // block_M for size in batch_sizes_list)
    dtype, accum_dtype = T.float16, T.float32

    @T.prim_func
    def kernel(
        A: T.Tensor([batch_sum, K], dtype),
        B: T.Tensor([batch_count, K, N], dtype),
        C: T.Tensor([batch_sum, N], dtype),
        batch_sizes: T.Tensor([batch_count], T.int32),
        batch_offsets: T.Tensor([batch_count], T.int32),
        batch_padded_offsets: T.Tensor([batch_count], T.int32),
    ):
        with T.Kernel(total_m_blocks, T.ceildiv(N, block_N), threads=threads) as (bx, by):
            A_shared = T.alloc_shared([block_M, block_K], dtype)
            B_shared = T.alloc_shared([block_K, block_N], dtype)
            C_local = T.alloc_fragment([block_M, block_N], accum_dtype)
            cur_batch_idx = T.alloc_local([1], T.int32)
            cur_batch_size = T.alloc_local([1], T.int32)

            m_start_padded = bx * block_M
            for i in range(batch_count):
                in_cur_batch_idx = m_start_padded >= batch_padded_offsets[i]
                cur_batch_idx[0] = T.if_then_else(in_cur_batch_idx, i, cur_batch_idx[0])
            cur_batch_size[0] = batch_sizes[cur_batch_idx[0]]
            m_start = (
                m_start_padded
                - batch_padded_offsets[cur_batch_idx[0]]
                + batch_offsets[cur_batch_idx[0]]
            )
            actual_rows = T.max(
                0,
                T.min(
                    block_M,
                    cur_batch_size[0] + batch_padded_offsets[cur_batch_idx[0]] - m_start_padded,
                ),
            )
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[m_start : m_start + block_M, k * block_K : (k + 1) * block_K], A_shared)
                T.copy(
                    B[
                        cur_batch_idx[0],
                        k * block_K : (k + 1) * block_K,
                        by * block_N : (by + 1) * block_N,
                    ],
                    B_shared,
                )
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                if i < actual_rows:
                    C[m_start + i, by * block_N + j] = C_local[i, j]

    return kernel


def construct_inputs(batch_sizes_list, K, N, padding_M, device, dtype):
    offsets, padded = [0], [0]
    for size in batch_sizes_list[:-1]:
        offsets.append(offsets[-1] + size)
        padded.append(padded[-1] + math.ceil(size / padding_M) * padding_M)
    A = torch.randn(sum(batch_sizes_list), K, device=device, dtype=dtype)
    B = torch.randn(len(batch_sizes_list), K, N, device=device, dtype=dtype)
    as_int = [
        torch.tensor(x, device=device, dtype=torch.int32)
        for x in (batch_sizes_list, offsets, padded)
    ]
    return A, B, *as_int


def run_tilelang_grouped_gemm(batch_sizes_list, K, N, block_M=32, block_N=64, block_K=32):
    kernel = grouped_gemm(tuple(batch_sizes_list), K, N, block_M, block_N, block_K)
    device = torch.device("cuda")
    A, B, sizes, offsets, padded = construct_inputs(
        batch_sizes_list, K, N, block_M, device, torch.float16
    )
    out = kernel(A, B, sizes, offsets, padded)
    pieces = torch.split(A.float(), batch_sizes_list)
    ref = torch.cat([a @ b.float() for a, b in zip(pieces, B)])
    torch.testing.assert_close(out.float(), ref, rtol=1e-2, atol=1e-2)
    print(f"groups {batch_sizes_list}: correct")


if __name__ == "__main__":
    run_tilelang_grouped_gemm([48, 5, 70], 64, 96)
    run_tilelang_grouped_gemm([1, 32], 40, 33)
