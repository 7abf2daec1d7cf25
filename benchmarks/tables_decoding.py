"""Functions of whole arrays whose blocks matter: decoding, long rows, products, against torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from measure import Row
from tables_recurrences import against_torch

import tile_api as tile


@tile.function(target="cpu")
def decoding(q, k, v):
    """Return attention of one query."""
    return tile.nn.attention(q, k, v)


@tile.function(target="cpu")
def long_sums(x):
    """Return the sums of rows."""
    return x.sum(axis=-1)


@tile.function(target="cpu")
def column_sums(x):
    """Return the sums of columns."""
    return x.sum(axis=0)


@tile.function(target="cpu")
def product(x, w):
    """Return a product of matrices."""
    return x @ w


@tile.function(target="cpu")
def swiglu(x, gate, up):
    """Return one product, where another one lets it through."""
    y = x @ gate
    return y / (1 + np.exp(-y)) * (x @ up)


@tile.function(target="cpu")
def cross_entropy(x, matrix, target):
    """Return how unlikely targets are, of logits that are nowhere stored."""
    z = x @ matrix
    hit = np.arange(matrix.shape[1]) == target[:, None]
    return np.logaddexp.reduce(z, axis=-1) - np.where(hit, z, 0).sum(axis=-1)


def blocks(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Compare with torch, by bytes of tensors or by FLOPs."""
    functional, peak = torch.nn.functional, peaks["float32"]
    torch.manual_seed(0)
    sdpa = functional.scaled_dot_product_attention
    for heads, tokens in ((8, 8192), (1, 65_536)):
        q, k, v = (torch.randn(1, heads, n, 64) for n in (1, tokens, tokens))
        name = f"decoding {heads} x {tokens} keys"
        yield from against_torch(name, decoding, sdpa, (q, k, v), 2 * k.nbytes / 1e9)
    x = torch.randn(2, 1 << 22)
    yield from against_torch("sums of 2 rows", long_sums, lambda x: x.sum(-1), (x,), x.nbytes / 1e9)
    x = torch.randn(4096, 2048)
    yield from against_torch(
        "sums of columns", column_sums, lambda x: x.sum(0), (x,), x.nbytes / 1e9
    )
    cases: dict[str, tuple[Callable[..., object], Callable[..., object], tuple[int, ...]]] = {
        "linear": (product, lambda x, w: x @ w, (512, 768, 2048)),
        "linear of one row": (product, lambda x, w: x @ w, (1, 4096, 4096)),
        "SwiGLU": (swiglu, lambda x, g, u: functional.silu(x @ g) * (x @ u), (512, 768, 2048)),
    }
    for name, (ours, peer, (m, k, n)) in cases.items():
        weights = [torch.randn(k, n) for _ in range(1 + (ours is swiglu))]
        flops = 2 * m * k * n * len(weights) / 1e9
        inputs = (torch.randn(m, k), *weights)
        yield from against_torch(f"{name} {m}x{k}x{n}", ours, peer, inputs, flops, peak)
    inputs = torch.randn(512, 256) / 16, torch.randn(256, 8192), torch.randint(0, 8192, (512,))
    yield from against_torch(
        "linear and cross entropy 512x256x8192", cross_entropy,
        lambda x, w, t: functional.cross_entropy(x @ w, t, reduction="none"),
        inputs, 2 * 512 * 256 * 8192 / 1e9, peak,
    )  # fmt: skip
