"""Functions of whole arrays against kernels written by hand, and against torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from measure import Row, cores, median_ms, set_threads
from tables_decoding import blocks
from tables_recurrences import recurrences
from tables_windows import gathers_and_windows

import tile_api as tile
from kernels import attention, layer_norm, rms_norm, softmax


@tile.function(target="cpu")
def softmax_of(x):
    """Return the softmax of rows."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@tile.function(target="cpu")
def rms_norm_of(x, weight):
    """Return rows divided by the root of their mean square."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * weight


@tile.function(target="cpu")
def layer_norm_of(x, weight, bias):
    """Return rows without their mean, divided by their deviation."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * weight + bias


@tile.function(target="cpu")
def attention_of(q, k, v, causal):
    """Return attention, each query over keys that are not later if causal."""
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(q.shape[-1]))
    if causal:
        s = np.where(np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-2]), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v


def arrays(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Compare calls that allocate their results; the work is bytes moved, or FLOPs."""
    functional = torch.nn.functional
    torch.manual_seed(0)
    for rows, columns in ((4096, 1024), (512, 8192)):
        x, w, b = torch.randn(rows, columns), torch.randn(columns), torch.randn(columns)
        size, moved = f"{rows}x{columns}", 2 * x.nbytes / 1e9
        cases: dict[str, tuple[Callable[..., object], ...]] = {
            f"softmax {size}": (
                lambda x: softmax_of(x), softmax(rows, columns), lambda x: x.softmax(-1),
            ),
            f"rms norm {size}": (
                lambda x, w: rms_norm_of(x, w), rms_norm(rows, columns),
                lambda x, w: functional.rms_norm(x, x.shape[-1:], w, 1e-5),
            ),
            f"layer norm {size}": (
                lambda x, w, b: layer_norm_of(x, w, b), layer_norm(rows, columns),
                lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, 1e-5),
            ),
        }  # fmt: skip
        for count, (name, contenders) in enumerate(cases.items(), 1):
            yield from _rows(name, contenders, (x, w, b)[:count], moved, 0.0)
    sdpa = functional.scaled_dot_product_attention
    for causal in (False, True):
        q, k, v = (torch.randn(1, 8, 1024, 64) for _ in range(3))
        contenders = (
            lambda q, k, v, causal=causal: attention_of(q, k, v, causal),
            attention(8, 1024, 64, "float32", causal=causal),
            lambda q, k, v, causal=causal: sdpa(q, k, v, is_causal=causal),
        )
        flops = 4 * 8 * 1024**2 * 64 * (0.5 if causal else 1) / 1e9
        name = f"attention 8x1024x64{' causal' if causal else ''}"
        yield from _rows(name, contenders, (q, k, v), flops, peaks["float32"])
    yield from blocks(peaks)
    yield from recurrences(peaks)
    yield from gathers_and_windows(peaks)


def _rows(
    name: str,
    contenders: tuple[Callable[..., object], ...],
    inputs: tuple[torch.Tensor, ...],
    work: float,
    peak: float,
) -> Iterator[Row]:
    derived, by_hand, peer = contenders
    torch.testing.assert_close(derived(*inputs), peer(*inputs), rtol=1e-4, atol=1e-4)
    for threads in range(1, cores() + 1):
        set_threads(threads)
        times = median_ms(
            {
                "ours": lambda: derived(*inputs),
                "by hand": lambda: by_hand(*inputs),
                "torch": lambda: peer(*inputs),
            },
            threads,
        )
        yield Row(name, threads, times.pop("ours"), times, work, peak * threads, 0.9)
