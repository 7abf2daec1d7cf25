"""Time on a device: by events and graphs on a GPU, by the clock on a processor that stands in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

import torch

Run = Callable[[], Any]

REPLAY_US = 1500.0
"""How long a replay takes about; shorter runs are replayed from a graph of several, since launches
would be in the way. The first guess has them in it, which is much on a slow host."""

FEWEST, MOST = 5, 60
"""Rounds in which all contestants take turns."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured of one contestant, in microseconds per run."""

    median: float
    low: float
    high: float
    rounds: int
    is_graph: bool = False


class Gpu:
    """Times work on the current GPU by events, which the GPU itself records."""

    name = "cuda"

    def __init__(self) -> None:
        facts = torch.cuda.get_device_properties(0)
        self.device = torch.device("cuda", 0)
        self.cache_bytes = int(getattr(facts, "L2_cache_size", 50 << 20))

    def wait(self) -> None:
        """Wait for all work; a kernel that did what it must not raises here."""
        torch.cuda.synchronize()

    def free_bytes(self) -> int:
        """Return how much memory is left."""
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0])

    def elapsed_us(self, run: Run) -> float:
        """Return how long `run` takes on the GPU."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e3

    def recorded(self, runs: Sequence[Run]) -> Run:
        """Return a replay of `runs`, captured in a graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            runs[0]()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for run in runs:
                run()
        return lambda: graph.replay()


class Processor:
    """Stands in for a GPU where there is none: for rehearsals, whose times mean nothing."""

    name = "cpu"

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.cache_bytes = 1 << 16

    def wait(self) -> None:
        """Nothing is under way."""

    def free_bytes(self) -> int:
        """Return what a rehearsal may use."""
        return 1 << 28

    def elapsed_us(self, run: Run) -> float:
        """Return how long `run` takes."""
        start = time.perf_counter()
        run()
        return (time.perf_counter() - start) * 1e6

    def recorded(self, runs: Sequence[Run]) -> Run:
        """Return what does `runs` one after the other."""

        def replay() -> None:
            for run in runs:
                run()

        return replay


Device = Gpu | Processor


def turns(runs: Sequence[Run]) -> Iterator[Run]:
    """Yield `runs` over and over: each has tensors of its own, so that caches do not help."""
    while True:
        yield from runs


def quick_us(device: Device, runs: Sequence[Run], repeats: int = 3) -> float:
    """Return about how long one of `runs` takes, warmed up: the least of a few."""
    several = turns(runs)
    next(several)()
    device.wait()
    return min(device.elapsed_us(next(several)) for _ in range(repeats))


@dataclass(frozen=True, slots=True)
class _Stopwatch:
    """How one contestant is measured: `run` does `count` runs."""

    run: Run
    count: int
    is_graph: bool


def _stopwatch(device: Device, runs: Sequence[Run], may_record: bool) -> _Stopwatch:
    about = max(quick_us(device, runs), 0.5)
    several = turns(runs)
    if about > REPLAY_US or not may_record:
        return _Stopwatch(lambda: next(several)(), 1, is_graph=False)
    count = max(1, round(REPLAY_US / about / len(runs))) * len(runs)
    try:
        replay = device.recorded([next(several) for _ in range(count)])
        device.wait()
    except RuntimeError:  # somebody else's code may do what cannot be captured
        device.wait()
        return _Stopwatch(lambda: next(several)(), 1, is_graph=False)
    return _Stopwatch(replay, count, is_graph=True)


def race(
    device: Device,
    contestants: Mapping[str, Sequence[Run]],
    seconds: float,
    no_graph: Sequence[str] = (),
) -> dict[str, Sample]:
    """Measure contestants by turns, so that clocks and heat are the same for all.

    Parameters
    ----------
    contestants
        By name: runs that do the same on different tensors.
    seconds
        For all of them; a few rounds are run however long they take.
    no_graph
        Those that cannot be captured.
    """
    watches = {
        name: _stopwatch(device, runs, name not in no_graph) for name, runs in contestants.items()
    }
    times: dict[str, list[float]] = {name: [] for name in watches}
    for watch in watches.values():
        watch.run()
    device.wait()
    deadline = time.monotonic() + seconds
    for number in range(MOST):
        if number >= FEWEST and time.monotonic() > deadline:
            break
        for name, watch in watches.items():
            times[name].append(device.elapsed_us(watch.run) / watch.count)
    return {name: _sample(times[name], watches[name].is_graph) for name in watches}


def _sample(times: Sequence[float], is_graph: bool) -> Sample:
    low, median, high = quantiles(times, n=4, method="inclusive")
    return Sample(median, low, high, len(times), is_graph)
