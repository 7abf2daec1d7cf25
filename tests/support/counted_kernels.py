"""Kernels whose copies waves count, and their arguments."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import tile_api.language as T

WAIT = re.compile(r"lds_wait<(\d+)>")


def integers(*shape: int, dtype: str = "float16", seed: int = 0) -> np.ndarray:
    """Return small numbers: their products and sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def poison(*shape: int) -> np.ndarray:
    """Return an output that nobody has written."""
    return np.full(shape, np.nan, np.float32)


def product(
    m: Any,
    n: Any,
    k: Any,
    stages: int,
    dtype: str = "float16",
    *,
    block: tuple[int, int, int] = (64, 64, 32),
    threads: int = 128,
) -> Any:
    """Return the kernel ``C = A @ B^T`` in float32."""
    rows, columns, depth = block

    @T.prim_func
    def product(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), C: T.Tensor((m, n), "float32")
    ):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=threads) as (bx, by):
            A_s = T.alloc_shared((rows, depth), dtype)
            B_s = T.alloc_shared((columns, depth), dtype)
            C_l = T.alloc_fragment((rows, columns), "float32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(A.shape[1], depth), num_stages=stages):
                T.copy(A[by * rows, k * depth], A_s)
                T.copy(B[bx * columns, k * depth], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=True)
            T.copy(C_l, C[by * rows, bx * columns])

    return product


def steady_waits(text: str) -> list[int]:
    """Return the numbers that the rounds of loops over k wait for, in the text of a kernel."""
    found: list[int] = []
    depth: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if depth is not None and line == " " * depth + "}":
            depth = None
        elif depth is None and re.search(r"for \(int k(_\d+)? = ", line):
            depth = indent
        elif depth is not None:
            found += [int(n) for n in WAIT.findall(line)]
    return found
