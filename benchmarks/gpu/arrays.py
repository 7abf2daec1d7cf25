"""Functions of whole arrays on the GPU here, beside torch and what torch.compile makes of it.

    python benchmarks/gpu/arrays.py --out arrays.json --budget 120
    python benchmarks/gpu/arrays.py --rehearse

Everything is compiled where it runs: needs tile-api, tile-cuda and torch with CUDA. Results are
compared with torch's in float64 first. `first s` is a first call: capture, choice, compiler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from live_table import print_table
from timing import Device, race

import tile_api as tile

F = torch.nn.functional


@tile.function
def product(x, w):
    """Return a product of matrices."""
    return x @ w


@tile.function
def linear_gelu(x, w, b):
    """Return a layer."""
    return tile.nn.gelu(x @ w + b)


@tile.function
def swiglu(x, gate, up):
    """Return one product, where another one lets it through."""
    y = x @ gate
    return y / (1 + np.exp(-y)) * (x @ up)


@tile.function
def softmax(x):
    """Return the softmax of rows."""
    return tile.nn.softmax(x)


@tile.function
def rms_norm(x, w):
    """Return rows divided by the root of their mean square."""
    return tile.nn.rms_norm(x, w)


@tile.function
def layer_norm(x, w, b):
    """Return rows without their mean, divided by their deviation."""
    return tile.nn.layer_norm(x, w, b)


@tile.function
def attention(q, k, v):
    """Return attention over all keys."""
    return tile.nn.attention(q, k, v)


@tile.function
def causal(q, k, v):
    """Return attention over keys that are not later."""
    return tile.nn.attention(q, k, v, causal=True)


@tile.function
def column_sums(x):
    """Return the sums of columns."""
    return x.sum(axis=0)


@dataclass(frozen=True)
class Case:
    """A function, what torch has for it, and the shapes of its arguments."""

    name: str
    ours: Callable[..., Any]
    peer: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtype: torch.dtype
    work: float
    """TFLOP if a product is in it, else TB."""


def cases(is_tiny: bool) -> Iterator[Case]:
    """Yield the cases, the most important first."""
    half, single = torch.float16, torch.float32
    n = 64 if is_tiny else 4096
    yield Case("product", product, torch.mm, ((n, n), (n, n)), half, 2e-12 * n**3)
    heads, tokens, dim = (2, 64, 32) if is_tiny else (16, 4096, 128)
    shapes = ((1, heads, tokens, dim),) * 3
    flops = 4e-12 * heads * tokens**2 * dim
    sdpa = F.scaled_dot_product_attention
    yield Case("attention", attention, sdpa, shapes, half, flops)
    yield Case(
        "causal attention", causal, lambda q, k, v: sdpa(q, k, v, is_causal=True), shapes, half,
        flops / 2,
    )  # fmt: skip
    rows, columns = (64, 96) if is_tiny else (16384, 8192)
    for dtype in (half, single):
        width = 2 if dtype is half else 4
        moved = 2e-12 * rows * columns * width
        whole, row = (rows, columns), (columns,)
        yield Case("softmax", softmax, lambda x: x.softmax(-1), (whole,), dtype, moved)
        yield Case(
            "rms norm", rms_norm, lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6), (whole, row),
            dtype, moved,
        )  # fmt: skip
        yield Case(
            "layer norm", layer_norm, lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
            (whole, row, row), dtype, moved,
        )  # fmt: skip
        yield Case("sums of columns", column_sums, lambda x: x.sum(0), (whole,), dtype, moved / 2)
    m, k, wide = (64, 96, 128) if is_tiny else (4096, 4096, 11008)
    yield Case(
        "linear, GELU", linear_gelu, lambda x, w, b: F.gelu(x @ w + b),
        ((m, k), (k, wide), (wide,)), half, 2e-12 * m * k * wide,
    )  # fmt: skip
    yield Case(
        "SwiGLU", swiglu, lambda x, g, u: F.silu(x @ g) * (x @ u),
        ((m, k), (k, wide), (k, wide)), half, 4e-12 * m * k * wide,
    )  # fmt: skip
    keys = 128 if is_tiny else 32768
    decode = ((1, 32, 1, 128), (1, 32, keys, 128), (1, 32, keys, 128))
    yield Case("decoding", attention, sdpa, decode, half, 4e-12 * 32 * keys * 128)


def sets(case: Case, device: Device) -> list[tuple[torch.Tensor, ...]]:
    """Return inputs, as many sets as make the cache useless, up to four."""
    nbytes = sum(int(np.prod(s)) for s in case.shapes) * case.dtype.itemsize
    count = min(4, 1 + int(3 * device.cache_bytes // nbytes))
    scale = {i: s[0] ** -0.5 for i, s in enumerate(case.shapes) if i and len(s) == 2}
    return [
        tuple(
            (torch.randn(s, device=device.device) * scale.get(i, 1.0)).to(case.dtype)
            for i, s in enumerate(case.shapes)
        )
        for _ in range(count)
    ]


def error_of(found: torch.Tensor, case: Case, inputs: tuple[torch.Tensor, ...]) -> float:
    """Return the distance to what torch computes of wide numbers, over its size."""
    exact = case.peer(*(x.double() for x in inputs))
    return float((found.double() - exact).norm() / exact.norm())


def measured(case: Case, device: Device, seconds: float) -> dict[str, Any]:
    """Compile, check, and race; return what is in a line."""
    torch.manual_seed(int(time.time()))
    torch._dynamo.reset()
    inputs = sets(case, device)
    start = time.perf_counter()
    found = case.ours(*inputs[0])
    device.wait()
    first = time.perf_counter() - start
    error = error_of(found, case, inputs[0])
    bound = 1e-4 if case.dtype is torch.float32 else 1e-2
    if not error < bound:
        return {"first_s": first, "error": error, "status": "wrong"}
    contenders = {"ours": case.ours, "torch": case.peer, "Inductor": torch.compile(case.peer)}
    contenders["Inductor"](*inputs[0])
    runs = {
        name: [lambda x=x, call=call: call(*x) for x in inputs] for name, call in contenders.items()
    }
    samples = race(device, runs, seconds)
    return {
        "first_s": first, "error": error, "status": "right", "work": case.work,
        "us": {name: asdict(sample) for name, sample in samples.items()},
    }  # fmt: skip


def named(is_tiny: bool) -> Iterator[tuple[str, Any]]:
    """Yield the cases with their names."""
    for case in cases(is_tiny):
        name = f"{case.name} {'x'.join(map(str, case.shapes[-1]))} {str(case.dtype)[6:]}"
        yield name, partial(measured, case)


if __name__ == "__main__":
    print_table(__doc__.splitlines()[0], ("ours", "torch", "Inductor"), named)
