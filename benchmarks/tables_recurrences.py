"""Running sums and recurrences of whole arrays, against what users of torch write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from measure import Row, cores, median_ms, set_threads

import tile_api as tile

STEPS, HEADS, WIDTH = 2048, 8, 64


@tile.function(target="cpu")
def sums_of_rows(x):
    """Return the running sums of rows."""
    return np.cumsum(x, axis=-1)


@tile.function(target="cpu")
def sums_of_columns(x):
    """Return the running sums of columns."""
    return np.cumsum(x, axis=0)


@tile.function(target="cpu")
def linear_attention(q, k, v):
    """Return attention without a softmax, divided by the sums of its weights."""

    def step(carried, now):
        table, total = carried
        q, k, v = now
        table = table + k[..., :, None] * v[..., None, :]
        total = total + k
        read = (q[..., :, None] * table).sum(axis=-2)
        return (table, total), read / (q * total).sum(axis=-1, keepdims=True)

    start = np.zeros((*k.shape[1:], v.shape[-1]), v.dtype), np.zeros(k.shape[1:], v.dtype)
    return tile.scan(step, start, (q, k, v))[1]


@tile.function(target="cpu")
def gated_retention(q, k, v, gate):
    """Return sums of values by keys that decay by a gate for each head and step."""

    def step(h, now):
        q, k, v, gate = now
        h = gate[:, None, None] * h + k[:, :, None] * v[:, None, :]
        return h, np.einsum("hn,hnp->hp", q, h)

    start = np.zeros((*k.shape[1:], v.shape[-1]), v.dtype)
    return tile.scan(step, start, (q, k, v, gate))[1]


@tile.function(target="cpu")
def mamba_2(x, rate, a, b, c):
    """Return Mamba-2's scan: keys and queries are those of all heads."""

    def step(h, now):
        x, rate, b, c = now
        h = np.exp(-rate * a)[:, None, None] * h + (rate[:, None] * x)[:, :, None] * b
        return h, h @ c

    start = np.zeros((*x.shape[1:], b.shape[-1]), x.dtype)
    return tile.scan(step, start, (x, rate, b, c))[1]


def _weights(decay: torch.Tensor) -> torch.Tensor:
    """Return the product of decays after each step up to each later one, heads first."""
    total = torch.log(decay).cumsum(0).T
    apart = total[:, :, None] - total[:, None, :]
    return torch.exp(apart.masked_fill(~torch.ones(apart.shape[1:], dtype=bool).tril(), -torch.inf))


def _linear(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = torch.einsum("thn,shn->hts", q, k).tril()
    return torch.einsum("hts,shp->thp", weights / weights.sum(-1, keepdim=True), v)


def _retention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, gate: torch.Tensor
) -> torch.Tensor:
    weights = torch.einsum("thn,shn->hts", q, k) * _weights(gate)
    return torch.einsum("hts,shp->thp", weights, v)


def _mamba(
    x: torch.Tensor, rate: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor
) -> torch.Tensor:
    weights = (c @ b.T) * _weights(torch.exp(-rate * a))
    return torch.einsum("hts,shp->thp", weights, rate[..., None] * x)


def recurrences(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Compare with torch: running sums by bytes moved, the rest by FLOPs of its chunks."""
    torch.manual_seed(0)
    for rows, columns in ((4096, 1024), (64, 65_536)):
        x = torch.randn(rows, columns)
        size, moved = f"{rows}x{columns}", 2 * x.nbytes / 1e9
        yield from against_torch(
            f"sums of rows {size}", sums_of_rows, lambda x: x.cumsum(-1), (x,), moved
        )
    x = torch.randn(4096, 1024)
    name = "sums of columns 4096x1024"
    yield from against_torch(name, sums_of_columns, lambda x: x.cumsum(0), (x,), 2 * x.nbytes / 1e9)
    q, k, v = (torch.rand(STEPS, HEADS, WIDTH) for _ in range(3))
    gate = torch.rand(STEPS, HEADS) * 0.1 + 0.9
    flops = 8 * STEPS * HEADS * WIDTH**2 / 1e9
    size = f"{STEPS}x{HEADS}x{WIDTH}"
    peak = peaks["float32"]
    yield from against_torch(
        f"linear attention {size}", linear_attention, _linear, (q, k, v), flops, peak
    )
    yield from against_torch(
        f"gated retention {size}", gated_retention, _retention, (q, k, v, gate), flops, peak
    )
    inputs = v, torch.rand(STEPS, HEADS) * 0.1, torch.rand(HEADS), q[:, 0], k[:, 0]
    inputs = tuple(x.contiguous() for x in inputs)
    yield from against_torch(f"Mamba-2 {size}", mamba_2, _mamba, inputs, flops, peak)


def against_torch(
    name: str,
    ours: Callable[..., object],
    peer: Callable[..., object],
    inputs: tuple[torch.Tensor, ...],
    work: float,
    peak: float = 0.0,
) -> Iterator[Row]:
    """Compare a function of arrays with torch, on the same tensors."""
    torch.testing.assert_close(ours(*inputs), peer(*inputs), rtol=1e-3, atol=1e-3)
    for threads in range(1, cores() + 1):
        set_threads(threads)
        times = median_ms({"ours": lambda: ours(*inputs), "torch": lambda: peer(*inputs)}, threads)
        yield Row(name, threads, times.pop("ours"), times, work, peak * threads, 1.0)
