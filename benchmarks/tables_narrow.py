"""Narrow types on processors without instructions for them, against float32 on the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from measure import Row, Run, median_ms, set_threads

import tile_api as tile
from kernels import attention, matmul
from tile_cpu.machine import host_machine, machine, missing_features

MACHINES = ("x86-64-v3", "x86-64-v4")
SIZE, TILES = 1024, (256, 256, 256)
HEADS, TOKENS, DIM = 8, 1024, 64
PRODUCTS = {
    "bfloat16": 0.95,
    "float16": 0.95,
    "float8_e4m3fn": 0.9,
    "float8_e5m2": 0.9,
    "int8": 1.3,
}
ATTENTION = {"bfloat16": 0.95, "float16": 0.95, "float8_e4m3fn": 0.7}
"""The least speed that is good enough, as a part of that in float32."""


def without_instructions(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Products and attention on one thread, as those processors run them."""
    set_threads(1)
    for name in MACHINES:
        if missing_features(machine(name), host_machine()):
            continue
        work = 2 * SIZE**3 / 1e9
        yield from _beside_float32(f"GEMM {name}", _product, name, PRODUCTS, work)
        work = 4 * HEADS * TOKENS**2 * DIM / 1e9
        yield from _beside_float32(f"attention {name}", _attention, name, ATTENTION, work)


def _beside_float32(
    title: str, build: Any, name: str, bars: Mapping[str, float], work: float
) -> Iterator[Row]:
    runs: dict[str, Run] = {dtype: build(f"cpu:{name}", dtype) for dtype in ("float32", *bars)}
    times = median_ms(runs, 1, 0.6 * len(runs))
    base = {"float32": times["float32"]}
    for dtype, bar in bars.items():
        yield Row(f"{title} {dtype}", 1, times[dtype], base, work, 0.0, bar)


def _product(target: str, dtype: str) -> Run:
    out = "int32" if dtype == "int8" else "float32"
    build = tile.jit(out_idx=[-1], target=target)(matmul.func)
    kernel = build(SIZE, SIZE, SIZE, *TILES, dtype, out, out)
    generator = torch.Generator().manual_seed(0)
    a, b = (
        torch.randint(-3, 4, (SIZE, SIZE), generator=generator).float().to(getattr(torch, dtype))
        for _ in range(2)
    )
    got = kernel(a, b)
    torch.testing.assert_close(got.double(), a.double() @ b.double(), rtol=0, atol=0)
    return kernel.raw(a, b, torch.empty_like(got))


def _attention(target: str, dtype: str) -> Run:
    kernel = tile.jit(out_idx=[-1], target=target)(attention.func)(HEADS, TOKENS, DIM, dtype)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, TOKENS, DIM).to(getattr(torch, dtype)) for _ in range(3))
    got = kernel(q, k, v)
    exact = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    tolerance = 2e-2 if dtype != "float32" else 1e-4
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=tolerance)
    return kernel.raw(q, k, v, torch.empty_like(got))
