"""Contestants take turns; on a GPU short runs are replays of graphs."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from support.gpu_benchmarks import load

timing = load("timing")


class FakeCuda:
    """A clock that only kernels move, and what torch.cuda has to do with it."""

    def __init__(self):
        self.now_us = 0.0
        self.recording = None
        self.replays = 0
        fake = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = fake.now_us

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return (end.at - self.at) / 1e3

        class Stream:
            def wait_stream(self, other):
                pass

        class Graph:
            def replay(self):
                fake.replays += 1
                for us in self.work:
                    fake.now_us += us

        @contextmanager
        def graph(of):
            fake.recording = of.work = []
            yield
            fake.recording = None

        @contextmanager
        def stream(of):
            yield

        self.Event, self.Stream, self.CUDAGraph = Event, Stream, Graph
        self.graph, self.stream, self.current_stream = graph, stream, Stream
        self.synchronize = self.empty_cache = lambda: None
        self.mem_get_info = lambda: (7 << 30, 80 << 30)
        self.get_device_properties = lambda of: SimpleNamespace(L2_cache_size=50 << 20)

    def kernel(self, us):
        def run():
            if self.recording is None:
                self.now_us += us
            else:
                self.recording.append(us)

        return run


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(torch, "cuda", fake)
    return fake


def test_long_runs_are_timed_one_by_one(cuda):
    gpu = timing.Gpu()
    found = timing.race(gpu, {"a": [cuda.kernel(2000)], "b": [cuda.kernel(3000)]}, 0.0)
    assert found["a"].median == 2000
    assert found["b"].median == 3000
    assert found["a"].rounds == timing.FEWEST
    assert not found["a"].is_graph
    assert cuda.replays == 0


def test_short_runs_are_replayed_on_all_tensors(cuda):
    runs = [cuda.kernel(10), cuda.kernel(30)]
    found = timing.race(timing.Gpu(), {"a": runs}, 0.0)["a"]
    assert found.is_graph
    assert found.median == 20
    assert cuda.replays == timing.FEWEST + 1


def test_who_cannot_be_captured_is_timed_one_by_one(cuda):
    found = timing.race(timing.Gpu(), {"a": [cuda.kernel(10)]}, 0.0, no_graph=["a"])["a"]
    assert not found.is_graph
    assert found.median == 10


def test_a_failing_capture_falls_back(cuda, monkeypatch):
    monkeypatch.setattr(cuda, "graph", lambda of: (_ for _ in ()).throw(RuntimeError("no")))
    found = timing.race(timing.Gpu(), {"a": [cuda.kernel(10)]}, 0.0)["a"]
    assert not found.is_graph
    assert found.median == 10


def test_the_gpu_tells_its_memory_and_its_cache(cuda):
    gpu = timing.Gpu()
    assert gpu.free_bytes() == 7 << 30
    assert gpu.cache_bytes == 50 << 20


def test_all_take_turns(monkeypatch):
    order = []
    runs = {name: [lambda name=name: order.append(name)] for name in "ab"}
    monkeypatch.setattr(timing, "REPLAY_US", 0.0)
    monkeypatch.setattr(timing, "quick_us", lambda device, runs: 1e6)
    timing.race(timing.Processor(), runs, 0.0)
    assert order == ["a", "b"] * (timing.FEWEST + 1)


def test_a_stand_in_measures_something():
    found = timing.race(timing.Processor(), {"a": [lambda: sum(range(1000))]}, 0.01)["a"]
    assert 0 < found.low <= found.median <= found.high
