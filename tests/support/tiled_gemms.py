"""``C = A @ B`` in tiles, of any sizes, tiles and element types."""

from __future__ import annotations

from typing import Any

import tile_api.language as T


def tiled_gemm(
    m: Any,
    n: Any,
    k: Any,
    *,
    block: tuple[int, int, int] = (64, 64, 32),
    factor: str = "float16",
    result: str = "float16",
    stages: int = 2,
) -> Any:
    """Return the kernel; `block` are the rows, the columns and the depth of its tiles."""
    rows, columns, depth = block

    @T.prim_func
    def gemm(A: T.Tensor((m, k), factor), B: T.Tensor((k, n), factor), C: T.Tensor((m, n), result)):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), threads=128) as (bx, by):
            A_tile = T.alloc_shared((rows, depth), factor)
            B_tile = T.alloc_shared((depth, columns), factor)
            sums = T.alloc_fragment((rows, columns), "float32")
            T.clear(sums)
            for step in T.Pipelined(T.ceildiv(k, depth), num_stages=stages):
                T.copy(A[by * rows, step * depth], A_tile)
                T.copy(B[step * depth, bx * columns], B_tile)
                T.gemm(A_tile, B_tile, sums)
            T.copy(sums, C[by * rows, bx * columns])

    return gemm
