"""Mamba-2 in Triton: states of chunks, and outputs of chunks."""

from __future__ import annotations

from collections.abc import Iterator

import triton
import triton.language as tl
from contestant import Run
from problem import Sizes, Tensors

TILES = ((64, 64, 4, 3), (32, 64, 4, 3), (128, 64, 8, 2))
"""Rows of a scan, depth, warps, stages."""


@triton.jit
def _state(
    b, x, dt, falls, s, tokens, heads,
    CHUNK: tl.constexpr, P: tl.constexpr, N: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    head, chunk, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    chunks = tokens // CHUNK
    of_chunk = ((batch * heads + head) * chunks + chunk) * CHUNK
    first = batch.to(tl.int64) * tokens + chunk * CHUNK
    last = tl.load(falls + of_chunk + CHUNK - 1)
    p, n, depth = tl.arange(0, P), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((P, N), tl.float32)
    for k in range(0, CHUNK, BK):
        at = (first + k + depth)[:, None]
        xs = tl.load(x + (at * heads + head) * P + p[None, :])
        bs = tl.load(b + at * N + n[None, :])
        weight = tl.load(dt + of_chunk + k + depth)
        weight *= tl.exp(last - tl.load(falls + of_chunk + k + depth))
        acc = tl.dot((xs * weight[:, None]).to(tl.float16).T, bs, acc)
    where = ((batch.to(tl.int64) * chunks + chunk) * heads + head) * P
    tl.store(s + (where + p[:, None]) * N + n[None, :], acc)


def state(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
    """Yield a run for each depth of tiles."""
    batch, tokens, heads, chunk = (sizes[n] for n in ("batch", "tokens", "heads", "chunk"))
    grid = (heads, tokens // chunk, batch)
    for depth, warps, stages in ((64, 4, 3), (32, 4, 4), (128, 8, 2)):
        more = (tokens, heads, chunk, sizes["headdim"], sizes["dstate"], min(depth, chunk))

        def run(more=more, warps=warps, stages=stages) -> None:
            _state[grid](*inputs, *outputs, *more, num_warps=warps, num_stages=stages)

        yield run


@triton.jit
def _scan(
    cb, x, dt, falls, c, states, skip, y, tokens, heads,
    CHUNK: tl.constexpr, P: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    head, batch = tl.program_id(0), tl.program_id(2)
    chunk, m = tl.program_id(1) // (CHUNK // BM), tl.program_id(1) % (CHUNK // BM) * BM
    chunks = tokens // CHUNK
    of_chunk = ((batch * heads + head) * chunks + chunk) * CHUNK
    first = batch.to(tl.int64) * tokens + chunk * CHUNK
    number = batch.to(tl.int64) * chunks + chunk
    rows, depth = m + tl.arange(0, BM), tl.arange(0, BK)
    p, n = tl.arange(0, P), tl.arange(0, N)
    fall = tl.load(falls + of_chunk + rows)
    cs = tl.load(c + (first + rows)[:, None] * N + n[None, :])
    before = tl.load(states + ((number * heads + head) * P + p[:, None]) * N + n[None, :])
    acc = tl.dot(cs, before.T) * tl.exp(fall)[:, None]
    for k in range(0, m + BM, BK):
        ks = k + depth
        scores = tl.load(cb + (number * CHUNK + rows[:, None]) * CHUNK + ks[None, :])
        weight = tl.exp(fall[:, None] - tl.load(falls + of_chunk + ks)[None, :])
        weight = scores * weight * tl.load(dt + of_chunk + ks)[None, :]
        weight = tl.where(rows[:, None] >= ks[None, :], weight, 0.0)
        xs = tl.load(x + ((first + ks)[:, None] * heads + head) * P + p[None, :])
        acc = tl.dot(weight.to(tl.float16), xs, acc)
    at = ((first + rows)[:, None] * heads + head) * P + p[None, :]
    acc += tl.load(x + at) * tl.load(skip + head)
    tl.store(y + at, acc.to(tl.float16))


def scan(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
    """Yield a run for each shape of tiles."""
    batch, tokens, heads, chunk = (sizes[n] for n in ("batch", "tokens", "heads", "chunk"))
    for rows, depth, warps, stages in TILES:
        BM, BK = min(rows, chunk), min(depth, chunk)
        if chunk % BM or chunk % BK:  # nothing is masked
            continue
        more = (tokens, heads, chunk, sizes["headdim"], sizes["dstate"], BM, BK)
        grid = (heads, tokens // BM, batch)

        def run(more=more, grid=grid, warps=warps, stages=stages) -> None:
            _scan[grid](*inputs, *outputs, *more, num_warps=warps, num_stages=stages)

        yield run
