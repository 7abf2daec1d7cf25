"""Attention in Triton: forward, and decoding with latent attention."""

from __future__ import annotations

import math
from collections.abc import Iterator

import triton
import triton.language as tl
from contestant import Run
from problem import Sizes, Tensors
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _weights(scores, highest, total, scale2):
    """Return the weights of a tile, the new maximum and sum, and what shrinks older sums."""
    most = tl.maximum(highest, tl.max(scores, 1) * scale2)
    weights = tl.math.exp2(scores * scale2 - most[:, None])
    shrink = tl.math.exp2(highest - most)
    return weights, most, total * shrink + tl.sum(weights, 1), shrink


@triton.jit
def _attention(
    q, k, v, o, lse, scale2, tokens, heads,
    DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    place = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    rows = place * BM + tl.arange(0, BM)
    first, column = batch * tokens, head * DIM
    queries = q.load([first + place * BM, column])
    highest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, DIM), tl.float32)
    clear = place * BM // BN * BN if CAUSAL else tokens
    for n in range(0, clear, BN):
        scores = tl.dot(queries, k.load([first + n, column]).T)
        weights, highest, total, shrink = _weights(scores, highest, total, scale2)
        acc = tl.dot(weights.to(tl.float16), v.load([first + n, column]), acc * shrink[:, None])
    if CAUSAL:
        for n in range(clear, (place + 1) * BM, BN):
            scores = tl.dot(queries, k.load([first + n, column]).T)
            is_seen = rows[:, None] >= n + tl.arange(0, BN)[None, :]
            scores = tl.where(is_seen, scores, float("-inf"))
            weights, highest, total, shrink = _weights(scores, highest, total, scale2)
            values = v.load([first + n, column])
            acc = tl.dot(weights.to(tl.float16), values, acc * shrink[:, None])
    o.store([first + place * BM, column], (acc / total[:, None]).to(tl.float16))
    tl.store(lse + tl.program_id(1) * tokens + rows, highest + tl.math.log2(total))


def attention(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
    """Yield a run for each shape of tiles."""
    batch, tokens, heads, dim = (sizes[name] for name in ("batch", "tokens", "heads", "dim"))
    scale2 = math.log2(math.e) / math.sqrt(dim)
    for BM, BN, warps, stages in ((128, 128, 8, 2), (128, 64, 8, 3), (64, 128, 4, 2)):
        if tokens % BM or tokens % BN:  # no tile is masked
            continue
        blocks = ((BM, dim), (BN, dim), (BN, dim), (BM, dim))
        flat = [x.view(batch * tokens, heads * dim) for x in (*inputs, outputs[0])]
        given = [
            TensorDescriptor.from_tensor(x, list(b)) for x, b in zip(flat, blocks, strict=True)
        ]
        grid = (tokens // BM, batch * heads)

        def run(given=given, grid=grid, tile=(BM, BN), warps=warps, stages=stages) -> None:
            more = (outputs[1], scale2, tokens, heads, dim, *tile, sizes["causal"])
            _attention[grid](*given, *more, num_warps=warps, num_stages=stages)

        yield run


@triton.jit
def _mla(
    q, q_pe, kv, k_pe, o, scale2, tokens, heads,
    DIM: tl.constexpr, PE: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(0), tl.program_id(1) * BH
    queries = q.load([batch * heads + head, 0])
    of_places = q_pe.load([batch * heads + head, 0])
    highest = tl.full((BH,), float("-inf"), tl.float32)
    total = tl.zeros((BH,), tl.float32)
    acc = tl.zeros((BH, DIM), tl.float32)
    for n in range(0, tokens, BN):
        values = kv.load([batch * tokens + n, 0])
        scores = tl.dot(queries, values.T)
        scores = tl.dot(of_places, k_pe.load([batch * tokens + n, 0]).T, scores)
        weights, highest, total, shrink = _weights(scores, highest, total, scale2)
        acc = tl.dot(weights.to(tl.float16), values, acc * shrink[:, None])
    o.store([batch * heads + head, 0], (acc / total[:, None]).to(tl.float16))


def mla(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
    """Yield a run for each shape of tiles."""
    batch, heads, tokens, dim, pe = (sizes[n] for n in ("batch", "heads", "tokens", "dim", "pe"))
    scale2 = math.log2(math.e) / math.sqrt(dim + pe)
    widths = (dim, pe, dim, pe, dim)
    for BH, BN, warps, stages in ((64, 64, 8, 1), (64, 32, 8, 2), (16, 32, 4, 2)):
        if heads % BH or tokens % BN:
            continue
        heights = (BH, BH, BN, BN, BH)
        given = [
            TensorDescriptor.from_tensor(x.view(-1, width), [height, width])
            for x, width, height in zip((*inputs, *outputs), widths, heights, strict=True)
        ]
        grid = (batch, heads // BH)

        def run(given=given, grid=grid, tile=(BH, BN), warps=warps, stages=stages) -> None:
            more = (scale2, tokens, heads, dim, pe, *tile)
            _mla[grid](*given, *more, num_warps=warps, num_stages=stages)

        yield run
