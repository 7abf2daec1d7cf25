"""Clocks: the system's for what runs on the processor, events and graphs for GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from tile_core.errors import FrontendValueError

Run = Callable[[], object]

BACKENDS = ("event", "cupti", "cudagraph")
"""Ways to time a GPU: events around each call, the kernels alone, calls in one graph."""

REPLAYS = 10
"""How often a graph of many calls is run."""

GPU_FLUSH = 256 * 10**6
"""Bytes that are cleared before a call on a GPU: more than any second-level cache holds."""


class Clock(Protocol):
    """What `do_bench` asks of a machine."""

    def name(self, backend: str) -> str:
        """Return what measures, for people."""

    def flusher(self, fast: bool) -> Run:
        """Return what clears the caches."""

    def flushes(self) -> bool:
        """Whether caches are cleared unless somebody says otherwise."""

    def times(self, run: Run, before: Run, count: int, backend: str) -> list[float]:
        """Return the milliseconds of each call, with `before` run untimed before it."""


class HostClock:
    """The system's clock around calls that return when they are done."""

    def name(self, backend: str) -> str:
        """Return what measures."""
        return "host clock"

    def flushes(self) -> bool:
        """Leave caches as they are: callers of CPU kernels have their data in them."""
        return False

    def flusher(self, fast: bool) -> Run:
        """Return what writes a buffer of twice the last-level cache."""
        import numpy as np

        buffer = np.zeros(2 * last_level_cache() // 4, np.float32)
        return lambda: np.add(buffer, 1, out=buffer)

    def times(self, run: Run, before: Run, count: int, backend: str) -> list[float]:
        """Return milliseconds; of ``"cudagraph"``, averages over calls in a row."""
        if backend == "cudagraph":
            return [self._in_a_row(run, before, count) for _ in range(REPLAYS)]
        found = []
        for _ in range(count):
            before()
            start = time.perf_counter()
            run()
            found.append((time.perf_counter() - start) * 1e3)
        return found

    def _in_a_row(self, run: Run, before: Run, count: int) -> float:
        before()
        start = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - start) * 1e3 / count


class GpuClock:
    """Events in the stream of a GPU, or a graph that holds many calls; `TorchGpu` says how."""

    def __init__(self, api: Any) -> None:
        self.api = api

    def name(self, backend: str) -> str:
        """Return what measures."""
        return {"event": "events", "cupti": "kernels", "cudagraph": "graph"}[backend]

    def flushes(self) -> bool:
        """Clear the second-level cache: a kernel of a model finds other kernels' data there."""
        return True

    def flusher(self, fast: bool) -> Run:
        """Return what clears a buffer larger than the second-level cache."""
        cleared: Run = self.api.clearing(GPU_FLUSH, fast)
        return cleared

    def times(self, run: Run, before: Run, count: int, backend: str) -> list[float]:
        """Return milliseconds; of ``"cudagraph"``, averages over the calls of one graph."""
        if backend == "cupti":
            return [float(ms) for ms in self.api.kernel_times(run, before, count)]
        if backend == "cudagraph":
            return self._graph_times(run, count)
        pairs = [(self.api.event(), self.api.event()) for _ in range(count)]
        self.api.synchronize()
        for start, end in pairs:
            before()
            start.record()
            run()
            end.record()
        self.api.synchronize()
        return [float(start.elapsed_time(end)) for start, end in pairs]

    def _graph_times(self, run: Run, count: int) -> list[float]:
        def calls() -> None:
            for _ in range(count):
                run()

        replay = self.api.captured(calls)
        self.api.synchronize()
        found = []
        for _ in range(REPLAYS):
            start, end = self.api.event(), self.api.event()
            start.record()
            replay()
            end.record()
            self.api.synchronize()
            found.append(float(start.elapsed_time(end)) / count)
        return found


class TorchGpu:
    """The GPU that torch sees, NVIDIA's or AMD's, as torch spells it: ``"cuda"``, ``"cuda:1"``."""

    def __init__(self, device: object = None) -> None:
        from tile_api.tensors import torch_if_installed

        self.torch = torch_if_installed()
        if self.torch is None or not self.torch.cuda.is_available():
            raise FrontendValueError(
                "calls on a GPU are timed by torch, which sees none",
                hint="install torch for the GPU, or time the CPU with device='cpu'",
            )
        self.device = self.torch.device("cuda" if device in (None, "hip") else device)

    def event(self) -> Any:
        """Return an event that can tell times: ``record()``, ``elapsed_time(later)``."""
        return _TorchEvent(self.torch, self.device)

    def synchronize(self) -> None:
        """Wait until all that was asked for is done."""
        self.torch.cuda.synchronize(self.device)

    def clearing(self, nbytes: int, fast: bool) -> Run:
        """Return what writes zeros over a buffer, by words or by bytes."""
        torch = self.torch
        kind, size = (torch.int32, nbytes // 4) if fast else (torch.int8, nbytes)
        buffer = torch.empty(size, dtype=kind, device=self.device)
        zero: Run = buffer.zero_
        return zero

    def captured(self, run: Run) -> Run:
        """Return what runs again all that `run` launches, as one graph."""
        torch = self.torch
        stream = torch.cuda.Stream(self.device)
        with torch.cuda.stream(stream):
            run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        replay: Run = graph.replay
        return replay

    def kernel_times(self, run: Run, before: Run, count: int) -> list[float]:
        """Return the milliseconds that the GPU spends in the kernels of each call.

        torch's profiler tells how long every kernel ran: that of `before` alone is taken off.
        """
        return [self._kernels(run, before, count) - self._kernels(_nothing, before, count)]

    def _kernels(self, run: Run, before: Run, count: int) -> float:
        profiler = self.torch.profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as found:
            for _ in range(count):
                before()
                run()
            self.synchronize()
        total = 0.0  # microseconds, by torch's newer name for them or by its older one
        for event in found.key_averages():
            newer = getattr(event, "self_device_time_total", None)
            total += float(event.self_cuda_time_total if newer is None else newer)
        return total / 1e3 / count


class _TorchEvent:
    """An event in the stream that kernels on a device are launched on, whichever is current."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._cuda, self._device = torch.cuda, device
        self.event = torch.cuda.Event(enable_timing=True)

    def record(self) -> None:
        """Put the event behind all that was launched so far."""
        self.event.record(self._cuda.current_stream(self._device))

    def elapsed_time(self, end: _TorchEvent) -> float:
        """Return the milliseconds until `end`; both have happened."""
        return float(self.event.elapsed_time(end.event))


def _nothing() -> None:
    """Do nothing."""


def clock_of(device: object) -> Clock:
    """Return the clock of a device, as torch spells it, or an object with methods of `TorchGpu`.

    None is the GPU if torch was imported and sees one, else the CPU.
    """
    import sys

    if hasattr(device, "captured"):
        return GpuClock(device)
    if device is None:
        torch = sys.modules.get("torch")
        return GpuClock(TorchGpu()) if torch and torch.cuda.is_available() else HostClock()
    kind = str(getattr(device, "type", device)).partition(":")[0]
    return HostClock() if kind == "cpu" else GpuClock(TorchGpu(device))


@lru_cache(maxsize=1)
def last_level_cache(told: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Return the bytes of the largest cache of a core, as Linux tells; 32 MiB if it does not.

    More than 256 MiB are not looked for.
    """
    texts = [path.read_text() for path in told.glob("index*/size")]
    found = [int(text.rstrip("K\n")) << 10 for text in texts if text.endswith("K\n")]
    return min(max(found, default=0) or 1 << 25, 1 << 28)
