"""Functions of rows in Triton: one program for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import triton
import triton.language as tl
from contestant import Run
from family_rows import EPS
from problem import Sizes, Tensors


@triton.jit
def _copy(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def _softmax(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(x + at).to(tl.float32)
    row = tl.exp(row - tl.max(row, 0))
    tl.store(y + at, (row / tl.sum(row, 0)).to(tl.bfloat16))


@triton.jit
def _rms_norm(x, weight, y, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * BLOCK + columns
    row = tl.load(x + at).to(tl.float32)
    row *= tl.rsqrt(tl.sum(row * row, 0) / BLOCK + eps)
    tl.store(y + at, (row * tl.load(weight + columns)).to(tl.bfloat16))


@triton.jit
def _layer_norm(x, weight, bias, y, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * BLOCK + columns
    row = tl.load(x + at).to(tl.float32)
    row -= tl.sum(row, 0) / BLOCK
    row *= tl.rsqrt(tl.sum(row * row, 0) / BLOCK + eps)
    row = row * tl.load(weight + columns) + tl.load(bias + columns)
    tl.store(y + at, row.to(tl.bfloat16))


def _of_rows(kernel: Any, *more: float) -> Callable[[Sizes, Tensors, Tensors], Iterator[Run]]:
    """Return what yields a run for each number of warps; columns are a power of two."""

    def variants(sizes: Sizes, inputs: Tensors, outputs: Tensors) -> Iterator[Run]:
        for warps in (4, 8, 16):

            def run(warps=warps) -> None:
                given = (*inputs, *outputs, *more, sizes["columns"])
                kernel[(sizes["rows"],)](*given, num_warps=warps)

            yield run

    return variants


copy = _of_rows(_copy)
softmax = _of_rows(_softmax)
rms_norm = _of_rows(_rms_norm, EPS)
layer_norm = _of_rows(_layer_norm, EPS)
