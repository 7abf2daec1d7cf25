"""GPU kernels without a GPU: how long they take to compile, and to run in the emulator."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tile_api as tile
import tile_api.language as T
from kernels import attention, matmul
from tile_core.driver import lower
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import installed_plugins
from tile_sim import checking

ARCH, HOPPER = "cuda:sm_80", "cuda:sm_90a"
RUNS = 5


def print_gpu_compile_times() -> None:
    """Print milliseconds from a Python function to CUDA text, and from there to a cubin.

    Text is made on one thread: its CPU time is shown, the compiler's wall time.
    """
    for arch, cases in ((ARCH, _cases()), (HOPPER, _hopper_cases())):
        print(f"\ncompile times for {arch} in ms (after imports, medians of {RUNS})")
        phases = ("trace", "lower", "print", "= text", "NVRTC")
        print(f"{'kernel':<26}", *(f"{phase:>7}" for phase in phases), "lines")
        for name, trace in cases.items():
            _print_phases(name, trace, arch)
    print("\ncost of the text by size: the loop of a GEMM repeated")
    for count in (1, 2, 4, 8):
        _print_phases(f"{count} GEMM loops", lambda count=count: _repeated(count), compiled=False)


def _cases() -> dict[str, Callable[[], Any]]:
    half = ("float16", "float32", "float32")
    return {
        "GEMM 128x128x32": lambda: matmul.get_tir(1024, 1024, 1024, 128, 128, 32, *half),
        "attention 64x64": lambda: attention.get_tir(8, 1024, 64, "float16", 64, 64),
        "attention causal": lambda: attention.get_tir(8, 1024, 64, "float16", 64, 64, causal=True),
    }


def _hopper_cases() -> dict[str, Callable[[], Any]]:
    half = ("float16", "float32", "float32")
    wide = {"threads": 256, "stages": 4}
    shape = (8, 4096, 128, "float16")
    return {
        "GEMM 128x256x64": lambda: matmul.get_tir(4096, 4096, 4096, 128, 256, 64, *half, **wide),
        "attention 128x128": lambda: attention.get_tir(*shape, threads=256),
        "attention causal": lambda: attention.get_tir(*shape, threads=256, causal=True),
    }


def _print_phases(
    name: str, trace: Callable[[], Any], arch: str = ARCH, *, compiled: bool = True
) -> None:
    host = installed_plugins()
    tracing, traced = _cpu_ms(trace)
    kernel: Kernel = traced.kernel
    lowering, lowered = _cpu_ms(lambda: lower(kernel, arch, host))
    printing, text = _cpu_ms(lambda: lowered.text("source"))
    toolchain = ""
    if compiled:
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            lowered.backend.compile(lowered.module, lowered.target, lowered.options)
            times.append((time.perf_counter() - start) * 1e3)
        toolchain = f"{statistics.median(times):.0f}"
    total = tracing + lowering + printing
    print(
        f"{name:<26} {tracing:7.0f} {lowering:7.0f} {printing:7.0f} {total:7.0f} {toolchain:>7} "
        f"{len(text.splitlines())}"
    )


def _cpu_ms(run: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(RUNS):
        start = time.thread_time()
        result = run()
        times.append((time.thread_time() - start) * 1e3)
    return statistics.median(times), result


def _repeated(count: int) -> Any:
    """Return a kernel with `count` pipelined products, written out one after the other."""

    @T.macro
    def product(A, B, A_shared, B_shared, C_local, n, bx, by):
        for k in T.Pipelined(16, num_stages=3):
            T.copy(A[n, by * 128, k * 32], A_shared)
            T.copy(B[n, k * 32, bx * 128], B_shared)
            T.gemm(A_shared, B_shared, C_local)

    def products(*operands):
        for n in range(count):
            A, B, A_shared, B_shared, C_local, bx, by = operands
            product(A, B, A_shared, B_shared, C_local, n, bx, by)

    @T.prim_func
    def chain(
        A: T.Tensor((count, 512, 512), "float16"),
        B: T.Tensor((count, 512, 512), "float16"),
        C: T.Tensor((512, 512), "float32"),
    ):
        with T.Kernel(4, 4, threads=128) as (bx, by):
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C_local = T.alloc_fragment((128, 128), "float32")
            T.clear(C_local)
            products(A, B, A_shared, B_shared, C_local, bx, by)
            T.copy(C_local, C[by * 128, bx * 128])

    return chain


def print_emulator_times() -> None:
    """Print seconds of an emulated GEMM, with all checks and without any, after compilation."""
    print(f"\nemulated runs for {ARCH}@sim in seconds, medians of {RUNS}")
    program = matmul.get_tir(512, 512, 512, 128, 128, 32, "float16", "float32", "float32")
    kernel = tile.compile(program, target=f"{ARCH}@sim", out_idx=[-1])
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (512, 512)).astype(np.float16) for _ in range(2))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    for checks in ("none", "all", "all,counters"):
        times = []
        with checking(checks):
            for _ in range(RUNS):
                start = time.perf_counter()
                result = kernel(a, b)
                times.append(time.perf_counter() - start)
        np.testing.assert_array_equal(result, expected)
        print(f"GEMM 512 128x128x32, 3 stages, checks {checks:<13} {statistics.median(times):.2f}")
