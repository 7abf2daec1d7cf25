"""What this machine can do at most: measured, not looked up."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from tile_core.cost.roofline import Peaks
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.machine import host_machine
from tile_cpu.machine import machine as known_machine
from tile_cpu.speeds import speeds
from tile_cpu.tir.build import (
    allocate,
    f32,
    i32,
    loop,
    parameter,
    scratch,
    seq,
    splat,
    vload,
    vstore,
)
from tile_cpu.tir.nodes import ForKind, PrimFunc
from tile_cpu.toolchain import compile_module

ITERATIONS = 200_000
"""Steps of one timed run, milliseconds of them: clocks of virtual machines jump by tens of
microseconds where the host takes the core away."""

ACCUMULATORS = 12
"""Independent sums: enough to hide a fused multiply-add's latency on every x86 core."""

SHARES = 8
"""Parts for each of several threads, so that one that wakes up late leaves some to the others."""


def measure_fma_gflops(machine: CpuMachine | None = None, seconds: float = 0.2) -> float:
    """Return the most float32 GFLOP/s one core reaches: fused multiply-adds on registers.

    `machine` tells which instructions to use; None means all this machine has. The best runs are
    looked for so many `seconds`. Time is the thread's own, so that other processes do not lower the
    result; of the fast runs the tenth percentile counts, because such clocks err to both sides.
    """
    run, work = multiply_adds(machine)
    times: list[float] = []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or not times:
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return work / sorted(times)[len(times) // 10]


def multiply_adds(
    machine: CpuMachine | None = None, threads: int = 1
) -> tuple[Callable[[], object], float]:
    """Return what runs fused multiply-adds on registers, and how many GFLOP one call is.

    For each of several threads there is as much work as for one alone.
    """
    target = machine or host_machine()
    lanes, parts = target.lanes(32), 1 if threads == 1 else SHARES * threads
    iterations = ITERATIONS * threads // parts
    function = compile_module(_chain(lanes, iterations, parts), target).entry()
    import numpy as np

    values = np.full(lanes, 1.0, "float32")
    sums = np.zeros((parts, ACCUMULATORS * lanes), "float32")
    return lambda: function(values, sums), 2 * ACCUMULATORS * lanes * iterations * parts / 1e9


def _chain(lanes: int, iterations: int, parts: int) -> Any:
    """Return a loop over ``sums[p, j] = x * x + sums[p, j]`` for part p and accumulator j."""
    values = parameter([lanes], "float32", "values")
    sums = parameter([parts, ACCUMULATORS * lanes], "float32", "sums")
    cells = scratch([ACCUMULATORS * lanes], "float32", "cells")

    def step(_: Any) -> Any:
        x = vload(values, [i32(0)], lanes)
        return [
            vstore(cells, [i32(j * lanes)], x * x + vload(cells, [i32(j * lanes)], lanes), lanes)
            for j in range(ACCUMULATORS)
        ]

    starts = range(0, ACCUMULATORS * lanes, lanes)

    def part(p: Any) -> Any:
        return seq(
            allocate(cells, on_stack=True),
            [vstore(cells, [i32(s)], splat(f32(0.0), lanes), lanes) for s in starts],
            loop(iterations, step),
            [vstore(sums, [p, i32(s)], vload(cells, [i32(s)], lanes), lanes) for s in starts],
        )

    body = part(i32(0)) if parts == 1 else loop(parts, part, kind=ForKind.PARALLEL, name="part")
    return PrimFunc([values, sums], body).with_attr("global_symbol", "main")


def measure_copy_gbps(nbytes: int = 1 << 26, seconds: float = 0.3, threads: int = 1) -> float:
    """Return the GB/s that threads move when they copy `nbytes` (read plus written)."""
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    source = np.ones(nbytes // 4, "float32")
    target = np.ones_like(source)
    parts = [*zip(np.array_split(target, threads), np.array_split(source, threads), strict=True)]
    best, deadline = float("inf"), time.perf_counter() + seconds
    with ThreadPoolExecutor(threads) as pool:
        while time.perf_counter() < deadline or best == float("inf"):
            start = time.perf_counter()
            if threads == 1:
                np.copyto(target, source)
            else:
                list(pool.map(lambda part: np.copyto(*part), parts))
            best = min(best, time.perf_counter() - start)
    return 2 * nbytes / best / 1e9


def peaks_of(arch: str, name: str = "", seconds: float = 0.2) -> Peaks:
    """Return what a processor does at most with as many threads as loops run on.

    `arch` stands behind ``cpu:``; nothing, ``native`` and ``host`` are the one at hand, which is
    measured, so many `seconds` each. A `name` is a row of the table of speeds, taken as it is.

    Raises
    ------
    TargetError
        If there is no such row.
    """
    from tile_cpu.openmp_threads import num_threads

    threads = num_threads()
    if name or arch not in ("", "native", "host"):
        row, cpu = speeds(arch, name), known_machine(arch) if arch else host_machine()
        clock = row.clock_ghz
        gflops = 2 * cpu.lanes(32) * row.multiply_adds * row.clock_ghz
        told, gbps = row.name, min(row.memory_gbps * threads, row.socket_gbps)
    else:
        row = speeds("", host_machine().name)
        gflops = measure_fma_gflops(None, seconds)
        clock = gflops / (2 * host_machine().lanes(32) * row.multiply_adds)
        told = f"{host_machine().name}, measured"
        gbps = measure_copy_gbps(1 << 28, seconds, threads)
    tflops = gflops * threads / 1e3
    return Peaks(
        name=f"{told}, {threads} thread{'s' * (threads != 1)}",
        products=MappingProxyType({"float32": tflops, "float64": tflops / 2}),
        tflops=tflops,
        memory_gbps=gbps,
        launch_us=1.0,
        units=threads,
        cache_gbps=row.l3_bytes * clock * threads,
    )
