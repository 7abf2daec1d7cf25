"""Gathers, windows, selections and narrow types of whole arrays, against torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from measure import Row
from tables_recurrences import against_torch

import tile_api as tile

windows = np.lib.stride_tricks.sliding_window_view
functional = torch.nn.functional


@tile.function(target="cpu")
def embedding_norm(table, tokens, weight):
    """Return the rows of tokens, divided by the root of their mean square."""
    return tile.nn.rms_norm(table[tokens], weight, eps=1e-5)


@tile.function(target="cpu")
def convolution(x, weight, bias):
    """Return a convolution with bias and ReLU."""
    return np.maximum(tile.nn.conv2d(x, weight, bias, padding=1), 0)


@tile.function(target="cpu")
def filters_of_channels(x, weight, bias):
    """Return each channel filtered by 7 by 7 taps of its own."""
    return tile.nn.conv2d(x, weight, bias, padding=3, groups=x.shape[1])


@tile.function(target="cpu")
def causal_filter(x, weight, bias):
    """Return a filter of each channel, with SiLU."""
    y = tile.nn.conv1d(x, weight, bias, padding=(weight.shape[-1] - 1, 0), groups=x.shape[1])
    return tile.nn.silu(y)


@tile.function(target="cpu")
def highest_of_windows(x):
    """Return the highest of two by two pixels."""
    return windows(x, (2, 2), axis=(2, 3))[:, :, ::2, ::2].max(axis=(-2, -1))


@tile.function(target="cpu")
def best(x):
    """Return the two largest of each row, with their positions."""
    at = np.argsort(-x, axis=-1)[..., :2]
    return np.take_along_axis(x, at, axis=-1), at


@tile.function(target="cpu")
def product_of_bytes(x, y):
    """Return a product of bytes."""
    return x.astype("int32") @ y.astype("int32")


@tile.function(target="cpu")
def weights_of_4_bits(x, weight, scales):
    """Return a product with weights that lie two in a byte."""
    codes = np.stack([weight & 15, weight >> 4], axis=-1).reshape(weight.shape[0], -1)
    return x @ ((codes.astype("float32") - 8) * scales).T


def _unpacked(x: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    codes = torch.stack([weight & 15, weight >> 4], -1).flatten(1)
    return x @ ((codes.float() - 8) * scales).T


def gathers_and_windows(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Compare with torch: by bytes moved, or by FLOPs where products are the work."""
    torch.manual_seed(0)
    table, tokens, w = torch.randn(8192, 1024), torch.randint(8192, (4096,)), torch.randn(1024)
    yield from against_torch(
        "embedding and norm 4096x1024", embedding_norm,
        lambda table, tokens, w: functional.rms_norm(table[tokens], (1024,), w, 1e-5),
        (table, tokens, w), 2 * 4096 * 1024 * 4 / 1e9,
    )  # fmt: skip
    x, w, b = torch.randn(4, 64, 56, 56), torch.randn(64, 64, 3, 3), torch.randn(64)
    yield from against_torch(
        "conv 4x64x56x56 by 3x3", convolution,
        lambda x, w, b: functional.conv2d(x, w, b, padding=1).relu(),
        (x, w, b), 2 * 4 * 64 * 56**2 * 64 * 9 / 1e9, peaks["float32"],
    )  # fmt: skip
    yield from against_torch(
        "max pooling 4x64x56x56 by 2x2", highest_of_windows,
        lambda x: functional.max_pool2d(x, 2), (x,), 1.25 * x.nbytes / 1e9,
    )  # fmt: skip
    x, w, b = torch.randn(1, 96, 56, 56), torch.randn(96, 1, 7, 7), torch.randn(96)
    yield from against_torch(
        "filters of channels 96x56x56 by 7x7", filters_of_channels,
        lambda x, w, b: functional.conv2d(x, w, b, padding=3, groups=96),
        (x, w, b), 2 * 96 * 56**2 * 49 / 1e9, peaks["float32"],
    )  # fmt: skip
    x, w, b = torch.randn(4, 512, 1024), torch.randn(512, 1, 4), torch.randn(512)
    yield from against_torch(
        "causal filter 4x512x1024 by 4", causal_filter,
        lambda x, w, b: functional.silu(functional.conv1d(functional.pad(x, (3, 0)), w, b,
                                                          groups=512)),
        (x, w, b), 2 * x.nbytes / 1e9,
    )  # fmt: skip
    x = torch.randn(8192, 64)
    yield from against_torch(
        "best 2 of 8192x64", best, lambda x: tuple(x.topk(2)), (x,), x.nbytes / 1e9
    )
    x = torch.randn(256, 1024)
    weight = torch.randint(256, (1024, 512), dtype=torch.uint8)
    yield from against_torch(
        "4-bit weights 256x1024x1024", weights_of_4_bits, _unpacked,
        (x, weight, torch.rand(1024, 1)), 2 * 256 * 1024 * 1024 / 1e9, peaks["float32"],
    )  # fmt: skip
    x, y = (torch.randint(-128, 128, (512, 512), dtype=torch.int8) for _ in range(2))
    yield from against_torch(
        "product of bytes 512x512x512", product_of_bytes, torch._int_mm, (x, y), 2 * 512**3 / 1e9
    )
