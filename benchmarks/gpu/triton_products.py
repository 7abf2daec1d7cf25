"""Matrix products in Triton, with the tensor descriptors that Hopper's copy engine takes."""

from __future__ import annotations

from collections.abc import Iterator

import triton
import triton.language as tl
from contestant import Run
from problem import Sizes, Tensors
from triton.tools.tensor_descriptor import TensorDescriptor

TILES = ((128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (128, 128, 64, 4, 4))
"""Rows, columns, depth, warps, stages."""


@triton.jit
def _place(M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Return the tile of this program, in groups of rows of tiles for locality."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid = tl.program_id(0)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    return first + pid % (GROUP * columns) % height, pid % (GROUP * columns) // height


@triton.jit
def _gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = _place(M, N, BM, BN, 8)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row * BM, k]), b.load([column * BN, k]).T, acc)
    c.store([row * BM, column * BN], acc.to(tl.float16))


def gemm(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
    """Yield a run for each shape of tiles."""
    (a, b), (c,) = inputs, outputs
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    for BM, BN, BK, warps, stages in TILES:
        given = [
            TensorDescriptor.from_tensor(tensor, list(block))
            for tensor, block in ((a, (BM, BK)), (b, (BN, BK)), (c, (BM, BN)))
        ]
        grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)

        def run(given=given, grid=grid, tile=(BM, BN, BK), warps=warps, stages=stages) -> None:
            _gemm[grid](*given, m, n, k, *tile, num_warps=warps, num_stages=stages)

        yield run


@triton.jit
def _fp8(a, b, sa, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = _place(M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    groups = K // BK
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, groups):
        part = tl.dot(a.load([row * BM, k * BK]), b.load([column * BN, k * BK]).T)
        scale = tl.load(sa + rows * groups + k, rows < M, 0.0)
        acc += part * (scale * tl.load(sb + column * BN // BK * groups + k))[:, None]
    c.store([row * BM, column * BN], acc.to(tl.bfloat16))


def fp8(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
    """Yield a run for each shape of tiles; their depth is the 128 that share a scale."""
    (a, b, sa, sb), (c,) = inputs, outputs
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    for BM, BN, warps, stages in ((128, 128, 8, 3), (64, 128, 4, 4), (128, 64, 4, 4)):
        tiles = ((a, (BM, 128)), (b, (BN, 128)), (c, (BM, BN)))
        wa, wb, wc = (TensorDescriptor.from_tensor(t, list(block)) for t, block in tiles)
        grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)

        def run(given=(wa, wb, sa, sb, wc), grid=grid, tile=(BM, BN), warps=warps, s=stages):
            _fp8[grid](*given, m, n, k, *tile, 128, num_warps=warps, num_stages=s)

        yield run


@triton.jit
def _w4a16(
    a, b, scales, zeros, c, M, N, K,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    row, column = _place(M, N, BM, BN, 8)
    rows, columns = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    depth, half = tl.arange(0, BK), tl.arange(0, BK // 2)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + k + depth[None, :], rows[:, None] < M, 0.0)
        packed = tl.load(b + columns[:, None] * (K // 2) + k // 2 + half[None, :])
        codes = tl.reshape(tl.join(packed & 15, packed >> 4), (BN, BK))
        scale = tl.load(scales + k // GROUP * N + columns)
        zero = tl.load(zeros + k // GROUP * N + columns)
        w = (codes.to(tl.float16) - zero.to(tl.float16)[:, None]) * scale[:, None]
        acc = tl.dot(x, w.T, acc)
    where = c + rows[:, None] * N + columns[None, :]
    tl.store(where, acc.to(tl.float16), rows[:, None] < M)


def w4a16(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
    """Yield a run for each shape of tiles."""
    m, n, k, group = (sizes[name] for name in ("m", "n", "k", "group"))
    flat = ((16, 64, 128, 4, 4), (16, 128, 128, 4, 4), (16, 32, 128, 4, 4))
    for BM, BN, BK, warps, stages in flat if m <= 16 else TILES[:1] + TILES[3:]:
        if n % BN or k % BK:  # only rows are masked
            continue
        grid = (triton.cdiv(m, BM) * triton.cdiv(n, BN),)

        def run(grid=grid, tile=(BM, BN, BK), warps=warps, stages=stages) -> None:
            given = (*inputs, *outputs, m, n, k, group, *tile)
            _w4a16[grid](*given, num_warps=warps, num_stages=stages)

        yield run
