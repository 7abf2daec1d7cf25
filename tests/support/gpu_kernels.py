"""Kernels that everybody writes for GPUs, for tests of what becomes of them.

Each function returns a kernel for the sizes it is given. Texts of emitted code name lines of this
file: after an edit, golden texts are written anew.
"""

from __future__ import annotations

import math
from typing import Any

import tile_api.language as T


def gemm(
    m: int, n: int, k: int, *, threads: int = 128, stages: int = 3, layouts: Any = None
) -> Any:
    """Return ``C = A @ B`` in tiles of 128x128x32; `layouts(A, B)` are those of the factors."""

    @T.prim_func
    def matmul(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):
        with T.Kernel(T.ceildiv(n, 128), T.ceildiv(m, 128), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C_local = T.alloc_fragment((128, 128), "float32")
            if layouts is not None:
                T.annotate_layout(layouts(A_shared, B_shared))
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 32), num_stages=stages):
                T.copy(A[by * 128, ko * 32], A_shared)
                T.copy(B[ko * 32, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 128, bx * 128])

    return matmul


def attention(tokens: int, heads: int, dim: int, *, causal: bool, stages: int = 2) -> Any:
    """Return flash attention, forward, in blocks of 64 queries and 64 keys."""
    scale = math.log2(math.e) / math.sqrt(dim)
    shape = (tokens, heads, dim)

    @T.prim_func
    def flash_attention(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        O: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(tokens, 64), heads, threads=128) as (bx, by):
            Q_shared = T.alloc_shared((64, dim), "float16")
            K_shared = T.alloc_shared((64, dim), "float16")
            V_shared = T.alloc_shared((64, dim), "float16")
            scores = T.alloc_fragment((64, 64), "float32")
            weights = T.alloc_fragment((64, 64), "float16")
            acc = T.alloc_fragment((64, dim), "float32")
            highest = T.alloc_fragment((64,), "float32")
            before = T.alloc_fragment((64,), "float32")
            rescale = T.alloc_fragment((64,), "float32")
            row_sum = T.alloc_fragment((64,), "float32")
            total = T.alloc_fragment((64,), "float32")
            T.copy(Q[bx * 64 : (bx + 1) * 64, by, :], Q_shared)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(highest, -T.infinity("float32"))
            for k in T.Pipelined(bx + 1 if causal else T.ceildiv(tokens, 64), num_stages=stages):
                T.copy(K[k * 64 : (k + 1) * 64, by, :], K_shared)
                for i, j in T.Parallel(64, 64):
                    query, key = bx * 64 + i, k * 64 + j
                    visible = key < tokens and (key <= query if causal else True)
                    scores[i, j] = T.if_then_else(visible, 0, -T.infinity("float32"))
                T.gemm(
                    Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow
                )
                T.copy(highest, before)
                T.reduce_max(scores, highest, dim=1, clear=False)
                for i in T.Parallel(64):
                    rescale[i] = T.exp2((before[i] - highest[i]) * scale)
                for i, j in T.Parallel(64, 64):
                    scores[i, j] = T.exp2((scores[i, j] - highest[i]) * scale)
                T.reduce_sum(scores, row_sum, dim=1)
                for i in T.Parallel(64):
                    total[i] = total[i] * rescale[i] + row_sum[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(64, dim):
                    acc[i, j] *= rescale[i]
                T.copy(V[k * 64 : (k + 1) * 64, by, :], V_shared)
                T.gemm(weights, V_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(64, dim):
                acc[i, j] /= total[i]
            T.copy(acc, O[bx * 64 : (bx + 1) * 64, by, :])

    return flash_attention


def softmax(rows: int, columns: int) -> Any:
    """Return the softmax of rows, four to a block, kept in registers."""

    @T.prim_func
    def softmax_rows(
        X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")
    ):
        with T.Kernel(T.ceildiv(rows, 4), threads=128) as bx:
            x = T.alloc_fragment((4, columns), "float32")
            highest = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_max(x, highest, dim=1)
            for i, j in T.Parallel(4, columns):
                x[i, j] = T.exp(x[i, j] - highest[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(4, columns):
                x[i, j] /= total[i]
            T.copy(x, Y[bx * 4, 0])

    return softmax_rows


def layer_norm(rows: int, columns: int) -> Any:
    """Return rows with mean 0 and variance 1, eight to a block, times a weight."""

    @T.prim_func
    def layer_norm_rows(
        X: T.Tensor((rows, columns), "float32"),
        weight: T.Tensor((columns,), "float32"),
        Y: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, 8), threads=128) as bx:
            x = T.alloc_fragment((8, columns), "float32")
            squares = T.alloc_fragment((8, columns), "float32")
            centre = T.alloc_fragment((8,), "float32")
            spread = T.alloc_fragment((8,), "float32")
            T.copy(X[bx * 8, 0], x)
            T.reduce_sum(x, centre, dim=1)
            for i, j in T.Parallel(8, columns):
                x[i, j] -= centre[i] / columns
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, spread, dim=1)
            for i, j in T.Parallel(8, columns):
                x[i, j] *= T.rsqrt(spread[i] / columns + 1e-5) * weight[j]
            T.copy(x, Y[bx * 8, 0])

    return layer_norm_rows


def gemm_int4(m: int, n: int, k: int, *, group: int = 32) -> Any:
    """Return ``C = A @ W^T``; a weight is a code of four bits, less 8, times its group's scale."""

    @T.prim_func
    def matmul_w4a16(
        A: T.Tensor((m, k), "float16"),
        codes: T.Tensor((n, k // 2), "uint8"),
        scales: T.Tensor((n, k // group), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 64), "float16")
            codes_shared = T.alloc_shared((64, 32), "uint8")
            codes_local = T.alloc_fragment((64, 32), "uint8")
            W_local = T.alloc_fragment((64, 64), "float16")
            W_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 64), num_stages=2):
                T.copy(A[by * 64, ko * 64], A_shared)
                T.copy(codes[bx * 64, ko * 32], codes_shared)
                T.copy(codes_shared, codes_local)
                for i, j in T.Parallel(64, 64):
                    code = codes_local[i, j // 2] >> T.cast(j % 2 * 4, "uint8") & T.uint8(15)
                    scale = scales[bx * 64 + i, (ko * 64 + j) // group]
                    W_local[i, j] = T.cast(T.cast(code, "int32") - 8, "float16") * scale
                T.copy(W_local, W_shared)
                T.gemm(A_shared, W_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * 64, bx * 64])

    return matmul_w4a16


def split_k(m: int, n: int, k: int, *, parts: int = 4) -> Any:
    """Return ``C += A @ B``, of which `parts` blocks add up each tile atomically."""

    @T.prim_func
    def matmul_split_k(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), parts, threads=128) as (bx, by, bz):
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(k // parts // 32, num_stages=2):
                T.copy(A[by * 64, bz * (k // parts) + ko * 32], A_shared)
                T.copy(B[bz * (k // parts) + ko * 32, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(64, 64):
                T.atomic_add(C[by * 64 + i, bx * 64 + j], C_local[i, j])

    return matmul_split_k


def sums_by_threads(rows: int, columns: int) -> Any:
    """Return the sums of rows by 128 threads each: shuffles in warps, shared memory among them."""

    @T.prim_func
    def row_sums(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(rows, threads=128) as bx:
            tx = T.get_thread_binding(0)
            partial = T.alloc_shared((4,), "float32")
            total = T.alloc_var("float32")
            total = 0
            for step in T.serial(T.ceildiv(columns, 128)):
                if step * 128 + tx < columns:
                    total += X[bx, step * 128 + tx]
            for step in T.unroll(5):
                total += T.shfl_xor(total, 16 >> step)
            if tx % 32 == 0:
                partial[tx // 32] = total
            T.sync_threads()
            if tx == 0:
                Y[bx] = partial[0] + partial[1] + partial[2] + partial[3]

    return row_sums


def products_by_instructions(m: int, n: int, k: int) -> Any:
    """Return ``C = A @ B^T``, a warp per 16x8 tile: cp.async, ldmatrix and mma.sync by name."""

    @T.prim_func
    def warp_products(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((n, k), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(n // 8, m // 16, threads=32) as (bx, by):
            lane = T.get_thread_binding(0)
            A_shared = T.alloc_shared((16, k), "float16")
            B_shared = T.alloc_shared((8, k), "float16")
            a = T.alloc_local((8,), "float16")
            b = T.alloc_local((4,), "float16")
            c = T.alloc_local((4,), "float32")
            T.clear(c)
            for r in T.unroll(k // 16):
                i, j = (r * 32 + lane) // (k // 8), (r * 32 + lane) % (k // 8) * 8
                T.ptx_cp_async(
                    T.access_ptr(A_shared[i, j], "w"), T.access_ptr(A[by * 16 + i, j], "r"), 8
                )
            for r in T.unroll(k // 32):
                i, j = (r * 32 + lane) // (k // 8), (r * 32 + lane) % (k // 8) * 8
                T.ptx_cp_async(
                    T.access_ptr(B_shared[i, j], "w"), T.access_ptr(B[bx * 8 + i, j], "r"), 8
                )
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            for ko in T.serial(k // 16):
                T.ptx_ldmatrix(
                    False, 4, ".b16", a, 0, A_shared, lane % 16 * k + ko * 16 + lane // 16 * 8
                )
                T.ptx_ldmatrix(
                    False, 2, ".b16", b, 0, B_shared, lane % 8 * k + ko * 16 + lane // 8 % 2 * 8
                )
                T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, 0, b, 0, c, 0, False)
            for h in T.unroll(2):
                for e in T.unroll(2):
                    C[by * 16 + h * 8 + lane // 4, bx * 8 + lane % 4 * 2 + e] = c[h * 2 + e]

    return warp_products
