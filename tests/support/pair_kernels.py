"""Kernels whose blocks are pairs, and one whose blocks are not."""

from __future__ import annotations

import numpy as np

import tile_api.language as T

ROWS, COLUMNS, DEPTH = 256, 64, 384
M = T.dynamic("M")


def factors(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-2, 3, (n, DEPTH)).astype(np.float16) for n in (rows, COLUMNS))
    return a, b


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float32) @ b.astype(np.float32).T


@T.prim_func
def plain(
    A: T.Tensor((M, DEPTH), "float16"),
    B: T.Tensor((COLUMNS, DEPTH), "float16"),
    rounds: T.int32,
    C: T.Tensor((M, COLUMNS), "float32"),
):
    with T.Kernel(2 * T.ceildiv(M, 256), threads=128, cluster_dims=2) as by:
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((COLUMNS, 64), "float16")
        c = T.alloc_fragment((128, COLUMNS), "float32")
        T.clear(c)
        for k in T.Pipelined(rounds, num_stages=3):
            T.copy(A[by * 128, k * 64], a)  # copy A
            T.copy(B[0, k * 64], b)  # copy B
            T.gemm(a, b, c, transpose_B=True)  # multiply
        T.copy(c, C[by * 128, 0])


@T.prim_func
def promoted(
    A: T.Tensor((ROWS, DEPTH), "float16"),
    B: T.Tensor((COLUMNS, DEPTH), "float16"),
    rounds: T.int32,
    C: T.Tensor((ROWS, COLUMNS), "float32"),
):
    with T.Kernel(2, threads=128, cluster_dims=2) as by:
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((COLUMNS, 64), "float16")
        c = T.alloc_fragment((128, COLUMNS), "float32")
        d = T.alloc_fragment((128, COLUMNS), "float32")
        T.clear(d)
        for k in T.Pipelined(rounds, num_stages=2):
            T.copy(A[by * 128, k * 64], a)
            T.copy(B[0, k * 64], b)
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(128, COLUMNS):
                d[i, j] += c[i, j]
        T.copy(d, C[by * 128, 0])


@T.prim_func
def twice(
    A: T.Tensor((ROWS, DEPTH), "float16"),
    B: T.Tensor((COLUMNS, DEPTH), "float16"),
    rounds: T.int32,
    C: T.Tensor((ROWS, COLUMNS), "float32"),
):
    with T.Kernel(2, threads=256, cluster_dims=2) as by:
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((32, 64), "float16")
        b_more = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((128, 32), "float32")
        d = T.alloc_fragment((128, 32), "float32")
        T.clear(c)
        T.clear(d)
        for k in T.Pipelined(rounds, num_stages=2):
            T.copy(A[by * 128, k * 64], a)
            T.copy(B[0, k * 64], b)
            T.copy(B[32, k * 64], b_more)
            T.gemm(a, b, c, transpose_B=True)
            T.gemm(a, b_more, d, transpose_B=True)
        T.copy(c, C[by * 128, 0])
        T.copy(d, C[by * 128, 32])


@T.prim_func
def deep(
    A: T.Tensor((ROWS, DEPTH), "float16"),
    B: T.Tensor((COLUMNS, DEPTH), "float16"),
    rounds: T.int32,
    C: T.Tensor((ROWS, COLUMNS), "float32"),
):
    with T.Kernel(2, threads=128, cluster_dims=2) as by:
        a = T.alloc_shared((128, 16), "float16")
        b = T.alloc_shared((COLUMNS, 16), "float16")
        c = T.alloc_fragment((128, COLUMNS), "float32")
        T.clear(c)
        for k in T.Pipelined(rounds * 4, num_stages=8):
            T.copy(A[by * 128, k * 16], a)
            T.copy(B[0, k * 16], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * 128, 0])


@T.prim_func
def triangle(
    A: T.Tensor((ROWS, DEPTH), "float16"),
    B: T.Tensor((COLUMNS, DEPTH), "float16"),
    rounds: T.int32,
    C: T.Tensor((ROWS, COLUMNS), "float32"),
):
    with T.Kernel(2, threads=128, cluster_dims=2) as by:
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((COLUMNS, 64), "float16")
        c = T.alloc_fragment((128, COLUMNS), "float32")
        T.clear(c)
        for k in T.Pipelined(rounds - by, num_stages=2):
            T.copy(A[by * 128, k * 64], a)
            T.copy(B[0, k * 64], b)
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * 128, 0])
