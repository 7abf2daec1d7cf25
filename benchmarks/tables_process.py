"""Living in one process with torch; and how long compiling takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import torch
from measure import Row, cores, median_ms, set_threads

from kernels import attention, matmul


def alternating(peaks: Mapping[str, float]) -> Iterator[Row]:
    """One of our kernels, then one of torch's: no more than the sum of both is fair."""
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    c, d = torch.empty(512, 512), torch.empty(512, 512)
    kernel = matmul(512, 512, 512, 128, 128, 32, "float32", "float32", "float32")
    for threads in range(1, cores() + 1):
        set_threads(threads)
        ours = kernel.raw(a, b, c)

        def both() -> None:
            ours()  # noqa: B023
            torch.mm(a, b, out=d)

        runs = {"ours": ours, "torch": lambda: torch.mm(a, b, out=d), "both": both}
        times = median_ms(runs, threads, 2.0)
        alone = times["ours"] + times["torch"]
        work = 4 * 512**3 / 1e9
        yield Row("GEMM 512, then torch's", threads, times["both"], {"sum": alone}, work, 0, 0.95)


def print_compile_times() -> None:
    """Print milliseconds per phase of two kernels, compiled without any cache."""
    from tile_api.cache import default_cache
    from tile_api.settings import override

    print("\ncompile times in ms (after imports)")
    cases = {
        "GEMM 128x128x32": lambda: matmul.get_tir(
            1024, 1024, 1024, 128, 128, 32, "float32", "float32", "float32"
        ),
        "attention fp32": lambda: attention.get_tir(8, 1024, 64, "float32"),
        "attention bf16 causal": lambda: attention.get_tir(8, 1024, 64, "bfloat16", causal=True),
    }
    import tile_api as tile

    for name, trace in cases.items():
        with override(cache=False):
            tile.compile(trace())
        default_cache().clear()
        start = time.perf_counter()
        traced = trace()
        tracing = (time.perf_counter() - start) * 1e3
        with override(cache=False):  # neither found on disk nor kept there
            kernel = tile.compile(traced)
        total = (time.perf_counter() - start) * 1e3
        phases = {"trace": tracing, **kernel.phases_ms}
        split = ", ".join(f"{phase} {ms:.0f}" for phase, ms in phases.items() if ms >= 0.5)
        print(f"{name:<24} {total:7.0f}   {split}")
