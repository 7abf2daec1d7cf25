"""Attention, softmax, norms and elementwise kernels against torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from measure import Row, cores, median_ms, set_threads

from kernels import add, attention, copy, gelu, layer_norm, rms_norm, softmax

BARS = {
    ("float32", False): 1.15,
    ("float32", True): 1.5,
    ("bfloat16", False): 2.1,
    ("bfloat16", True): 2.7,
}


def attention_rows(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Flash attention forward: batch 1, 8 heads."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for threads in range(1, cores() + 1):
        for tokens in (1024, 4096):
            for dim in (64, 128):
                for (dtype, causal), bar in BARS.items():
                    kernel = attention(8, tokens, dim, dtype, causal=causal)
                    torch.manual_seed(0)
                    q, k, v = (
                        torch.randn(1, 8, tokens, dim).to(getattr(torch, dtype)) for _ in range(3)
                    )
                    got = kernel(q, k, v)
                    exact = sdpa(q.double(), k.double(), v.double(), is_causal=causal)
                    tolerance = 1e-4 if dtype == "float32" else 2e-2
                    torch.testing.assert_close(got.double(), exact, rtol=0, atol=tolerance)
                    set_threads(threads)
                    run = kernel.raw(q, k, v, torch.empty_like(got))
                    times = median_ms(
                        {
                            "ours": run,
                            "torch": lambda: sdpa(q, k, v, is_causal=causal),  # noqa: B023
                        },
                        threads,
                    )
                    flops = 4 * 8 * tokens**2 * dim * (0.5 if causal else 1) / 1e9
                    peak = peaks[dtype] * threads
                    name = f"{dtype} {tokens}x{dim}{' causal' if causal else ''}"
                    yield Row(name, threads, times.pop("ours"), times, flops, peak, bar)


def _one(
    name: str,
    kernel: Any,
    inputs: tuple[torch.Tensor, ...],
    reference: Callable[..., torch.Tensor],
    bar: float,
) -> Iterator[Row]:
    expected = reference(*inputs)
    torch.testing.assert_close(kernel(*inputs), expected, rtol=1e-5, atol=1e-5)
    moved = (expected.nbytes + sum(x.nbytes for x in inputs)) / 1e9
    for threads in range(1, cores() + 1):
        set_threads(threads)
        run = kernel.raw(*inputs, torch.empty_like(expected))
        times = median_ms({"ours": run, "torch": lambda: reference(*inputs)}, threads)
        yield Row(name, threads, times.pop("ours"), times, moved, 0.0, bar)


def row_wise(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Softmax and norms."""
    functional = torch.nn.functional
    for columns in (256, 512, 1024, 2048, 4096):
        rows = 2**22 // columns
        torch.manual_seed(0)
        x, w, b = torch.randn(rows, columns), torch.randn(columns), torch.randn(columns)
        size = f"{rows}x{columns}"
        yield from _one(
            f"softmax {size}", softmax(rows, columns), (x,), lambda x: x.softmax(-1), 2.0
        )
        yield from _one(
            f"rms norm {size}",
            rms_norm(rows, columns),
            (x, w),
            lambda x, w: functional.rms_norm(x, x.shape[-1:], w, 1e-5),
            1.3,
        )
        yield from _one(
            f"layer norm {size}",
            layer_norm(rows, columns),
            (x, w, b),
            lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b, 1e-5),
            1.3,
        )


def elementwise(peaks: Mapping[str, float]) -> Iterator[Row]:
    """Kernels bound by memory, against copies that take turns with them (one thread).

    The peak is what the fastest copy moves, NumPy's or the kernel that copies: bandwidth
    changes from minute to minute where other machines share the memory.
    """
    n = 1 << 25
    torch.manual_seed(0)
    a, b, got, out = torch.randn(n), torch.randn(n), torch.empty(n), torch.empty(n)
    cases: dict[str, tuple[Any, tuple[torch.Tensor, ...], Callable[[], object]]] = {
        "copy": (copy(n), (a,), lambda: np.copyto(out.numpy(), a.numpy())),
        "add": (add(n), (a, b), lambda: torch.add(a, b, out=out)),
        "gelu": (gelu(n), (a,), lambda: torch.ops.aten.gelu.out(a, out=out)),
    }
    runs: dict[str, Callable[[], object]] = {}
    for name, (kernel, inputs, reference) in cases.items():
        kernel(*inputs, got)
        reference()
        # 1 + erf(x) cancels for negative x: the error is absolute, an ulp of 1 times |x|.
        torch.testing.assert_close(got, out, rtol=1e-5, atol=1e-5)
        runs |= {name: kernel.raw(*inputs, got), f"{name} of a library": reference}
    set_threads(1)
    times = median_ms(runs, 1, seconds=3.0)
    moved = {name: 4 * n * (len(inputs) + 1) / 1e9 for name, (_, inputs, _) in cases.items()}
    copying = min(times["copy"], times["copy of a library"])
    for name in cases:
        peers = {"library": times[f"{name} of a library"]}
        bandwidth = moved["copy"] / copying * 1e3
        yield Row(f"{name} {n}", 1, times[name], peers, moved[name], bandwidth)
