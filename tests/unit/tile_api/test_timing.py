"""Timing: what is run, in which order, and what is told of the times; no real clock decides."""

from __future__ import annotations

import math
import statistics
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_api.timing.devices import (
    GPU_FLUSH,
    REPLAYS,
    GpuClock,
    HostClock,
    TorchGpu,
    clock_of,
    last_level_cache,
)
from tile_api.timing.profiler import do_bench, do_bench_cudagraph, gbps, tflops
from tile_api.timing.record import Timing
from tile_api.timing.roofline import Roofline, tensor_traffic
from tile_core.cost.roofline import Peaks
from tile_core.errors import FrontendValueError, UnsupportedOnTarget


class StubGpu:
    """A GPU whose calls take as long as they say; it remembers what it was asked for."""

    def __init__(self) -> None:
        self.now, self.log, self.capturing = 0.0, [], False

    def work(self, milliseconds: float) -> None:
        self.log.append("call")
        if not self.capturing:
            self.now += milliseconds

    def event(self) -> Any:
        made = SimpleNamespace(at=None)

        def record() -> None:
            made.at = self.now

        made.record, made.elapsed_time = record, lambda end: end.at - made.at
        return made

    def synchronize(self) -> None:
        self.log.append("wait")

    def clearing(self, nbytes: int, fast: bool) -> Any:
        assert nbytes == GPU_FLUSH

        def clear() -> None:
            self.log.append("clear" if fast else "clear bytes")
            self.now += 7.0

        return clear

    def captured(self, run: Any) -> Any:
        before = len(self.log)
        self.capturing = True
        run()
        self.capturing = False
        held = self.log[before:].count("call")

        def replay() -> None:
            self.log.append(f"graph of {held}")
            self.now += held * 0.5

        return replay

    def kernel_times(self, run: Any, before: Any, count: int) -> list[float]:
        return [0.25] * count


def test_events_stand_around_calls_and_not_around_what_is_before_them():
    gpu = StubGpu()
    times = do_bench(lambda: gpu.work(2.0), device=gpu, _n_warmup=2, _n_repeat=4, return_mode="all")
    assert times == [2.0] * 4
    assert gpu.log.count("call") == 1 + 2 + 4
    assert gpu.log.count("clear") == 2 + 4
    assert gpu.log[-1] == "wait", "events are read when they have happened"
    before = gpu.log.index("wait")
    assert "wait" not in gpu.log[before + 1 : -1], "calls are not waited for one by one"


def test_caches_of_gpus_may_stay_or_be_cleared_slowly():
    gpu = StubGpu()
    do_bench(lambda: gpu.work(2.0), device=gpu, _n_warmup=1, _n_repeat=1, flush=False)
    assert "clear" not in gpu.log
    do_bench(lambda: gpu.work(2.0), device=gpu, _n_warmup=1, _n_repeat=1, fast_flush=False)
    assert "clear bytes" in gpu.log


class StubTorch:
    """As much of torch as timing uses, on a GPU that it does not have."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.now = 0.0
        self.int32, self.int8 = "int32", "int8"
        stream = SimpleNamespace(wait_stream=lambda other: self.log.append("joined"))
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            synchronize=lambda device: self.log.append(("wait", device)),
            current_stream=lambda device=None: stream if device is None else f"stream of {device}",
            Event=self._event,
            Stream=lambda device: "side stream",
            stream=lambda stream: nullcontext(),
            CUDAGraph=lambda: SimpleNamespace(replay=lambda: self.log.append("replay")),
            graph=lambda graph: nullcontext(),
        )

        self.profiler = SimpleNamespace(
            profile=lambda activities: nullcontext(SimpleNamespace(key_averages=self._kernels)),
            ProfilerActivity=SimpleNamespace(CUDA="cuda"),
        )

    def _kernels(self) -> list[Any]:
        calls, clears = self.log.count("call"), self.log.count("zeros")
        self.log.clear()
        return [
            SimpleNamespace(self_device_time_total=250.0 * calls),
            SimpleNamespace(self_device_time_total=None, self_cuda_time_total=80.0 * clears),
        ]

    def device(self, name: str) -> str:
        return name

    def empty(self, size: int, dtype: str, device: str) -> Any:
        self.log.append((size, dtype, device))
        return SimpleNamespace(zero_=lambda: self.log.append("zeros"))

    def _event(self, enable_timing: bool) -> Any:
        assert enable_timing
        made = SimpleNamespace(at=0.0)

        def record(stream: str) -> None:
            assert stream == "stream of cuda:1"
            made.at = self.now

        made.record, made.elapsed_time = record, lambda end: end.at - made.at
        return made


def test_what_torch_is_asked_for(monkeypatch):
    fake = StubTorch()
    monkeypatch.setattr("tile_api.tensors.torch_if_installed", lambda: fake)

    def work() -> None:
        fake.log.append("call")
        fake.now += 3.0

    assert do_bench(work, device="cuda:1", _n_warmup=1, _n_repeat=2) == 3.0
    assert fake.log[0] == (GPU_FLUSH // 4, "int32", "cuda:1")
    assert fake.log.count("zeros") == 3
    assert fake.log[-1] == ("wait", "cuda:1")
    fake.log.clear()
    do_bench(work, device="cuda:1", _n_warmup=1, _n_repeat=2, backend="cudagraph")
    assert fake.log.count("replay") == REPLAYS
    assert "joined" in fake.log


def test_kernels_are_told_apart_from_what_clears_caches(monkeypatch):
    fake = StubTorch()
    monkeypatch.setattr("tile_api.tensors.torch_if_installed", lambda: fake)
    clock = GpuClock(TorchGpu("cuda"))
    clear = clock.flusher(fast=True)
    fake.log.clear()
    times = clock.times(lambda: fake.log.append("call"), clear, 10, "cupti")
    assert times == pytest.approx([0.25])


def test_graphs_hold_many_calls():
    gpu = StubGpu()
    timing = do_bench(
        lambda: gpu.work(2.0), device=gpu, backend="cudagraph", _n_warmup=1, _n_repeat=8,
        return_mode="timing",
    )  # fmt: skip
    assert timing.milliseconds == (0.5,) * REPLAYS
    assert timing.clock == "graph"
    assert gpu.log.count("graph of 8") == REPLAYS
    assert "clear" not in gpu.log


def test_do_bench_cudagraph_plans_by_the_length_of_a_call():
    gpu = StubGpu()
    assert do_bench_cudagraph(lambda: gpu.work(2.0), rep=20, device=gpu) == 0.5
    assert f"graph of {20 // 2}" in gpu.log


def test_kernels_alone():
    gpu = StubGpu()
    timing = do_bench(
        lambda: gpu.work(2.0), device=gpu, backend="cupti", _n_warmup=1, _n_repeat=3,
        return_mode="timing",
    )  # fmt: skip
    assert (timing.milliseconds, timing.clock) == ((0.25,) * 3, "kernels")


def test_gradients_are_dropped_before_each_call():
    gpu, x, seen = StubGpu(), torch.ones(2, requires_grad=True), []

    def step() -> None:
        seen.append(x.grad)
        x.grad = torch.ones(2)
        gpu.work(1.0)

    do_bench(step, grad_to_none=[x], device=gpu, _n_warmup=2, _n_repeat=3)
    assert all(grad is None for grad in seen[1:])
    do_bench_cudagraph(step, grad_to_none=[x], device=gpu, rep=2)
    assert all(grad is None for grad in seen[1:])


def test_slow_candidates_stop_early():
    gpu = StubGpu()
    timing = do_bench(
        lambda: gpu.work(30.0), device=gpu, early_stop_baseline=20.0, return_mode="timing"
    )
    assert timing.is_partial
    assert timing.mean == 30.0
    assert gpu.log.count("call") == 1 + timing.calls <= 4
    assert "stopped early" in str(timing)
    fast = do_bench(
        lambda: gpu.work(10.0), device=gpu, early_stop_baseline=20.0, return_mode="timing"
    )
    assert not fast.is_partial
    assert fast.calls > timing.calls


def test_orders_of_parameters():
    gpu, x = StubGpu(), torch.ones(1, requires_grad=True)
    x.grad = torch.ones(1)
    triton = do_bench(lambda: gpu.work(1.0), 1, 5, [x], [0.5, 1.0], device=gpu)
    assert triton == [1.0, 1.0]
    assert x.grad is None
    assert do_bench(lambda: gpu.work(1.0), 1, 5, None, None, "max", device=gpu) == 1.0
    gpu.log.clear()
    assert do_bench(lambda: gpu.work(1.0), 1, 5, 2, 3, [0.5], device=gpu) == 1.0
    assert gpu.log.count("call") == 1 + 2 + 3


@pytest.mark.parametrize("wrong", [{"backend": "sundial"}, {"return_mode": "mode"}])
def test_what_does_not_exist(wrong):
    with pytest.raises(FrontendValueError, match=r"sundial|mode"):
        do_bench(lambda: None, device="cpu", **wrong)


def test_times_of_the_host():
    calls = []
    timing = do_bench(
        lambda: calls.append("call"), device="cpu", _n_warmup=1, _n_repeat=6, return_mode="timing"
    )
    assert timing.calls == 6
    assert timing.clock == "host clock"
    assert not timing.is_flushed
    assert len(calls) == 8


def test_calls_in_a_row():
    calls = []
    times = HostClock().times(lambda: calls.append(1), lambda: calls.append(0), 5, "cudagraph")
    assert len(times) == REPLAYS
    assert calls == [0, 1, 1, 1, 1, 1] * REPLAYS


def test_caches_of_the_host_are_cleared_on_request(monkeypatch):
    log = []
    monkeypatch.setattr(HostClock, "flusher", lambda self, fast: lambda: log.append("clear"))
    do_bench(lambda: log.append("call"), device="cpu", _n_warmup=1, _n_repeat=2, flush=True)
    assert log == ["call", "clear", "call", "clear", "call", "clear", "call"]


def test_what_clears_the_caches_of_the_host_touches_more_than_they_hold():
    clear = HostClock().flusher(fast=True)
    assert clear().nbytes >= 2 * last_level_cache() >= 2 << 20


@pytest.mark.parametrize(
    ("sizes", "largest"),
    [
        ((), 32 << 20),
        (("0K",), 32 << 20),
        (("32K", "36608K", "2048K"), 36608 << 10),
        (("1048576K",), 256 << 20),
    ],
)
def test_the_largest_cache_of_a_core(sizes, largest, tmp_path):
    for place, size in enumerate(sizes):
        (tmp_path / f"index{place}").mkdir()
        (tmp_path / f"index{place}" / "size").write_text(f"{size}\n")
    assert last_level_cache(tmp_path) == largest


def test_which_clock():
    assert isinstance(clock_of("cpu"), HostClock)
    assert isinstance(clock_of(torch.device("cpu")), HostClock)
    if not torch.cuda.is_available():
        assert isinstance(clock_of(None), HostClock)
        with pytest.raises(FrontendValueError, match="torch, which sees none"):
            clock_of("cuda")


def test_what_is_told():
    timing = Timing((1.0, 2.0, 3.0, 4.0))
    assert [timing.told(m) for m in ("mean", "median", "min", "max")] == [2.5, 2.5, 1.0, 4.0]
    assert timing.told("all") == [1.0, 2.0, 3.0, 4.0]
    assert timing.told("timing") is timing
    assert timing.told("mean", [0.5]) == 2.5
    assert timing.told("mean", [0.0, 0.25, 1.0]) == [1.0, 1.75, 4.0]
    half = 3.182 * statistics.stdev(timing.milliseconds) / 2
    assert timing.interval == pytest.approx((2.5 - half, 2.5 + half))
    assert str(timing) == "2.5 ± 2.1 ms (95 %), 4 calls by host clock"
    assert math.isinf(Timing((1.0,)).half_width)


@pytest.mark.parametrize(("calls", "t"), [(12, 2.201), (31, 2.042), (61, 2.000), (1001, 1.962)])
def test_student(calls, t):
    values = tuple(float(k % 2) for k in range(calls))
    spread = statistics.stdev(values) / math.sqrt(calls)
    assert Timing(values).half_width / spread == pytest.approx(t, abs=3e-3)


def test_the_interval_holds_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    timings = [Timing(tuple(rng.normal(5.0, 1.0, 8))) for _ in range(400)]
    held = sum(t.interval[0] <= 5.0 <= t.interval[1] for t in timings)
    assert 0.92 <= held / 400 <= 0.98


def test_rates():
    assert tflops(2 * 1024**3, 2.0) == pytest.approx(1.073741824)
    assert gbps(10**9, 500.0) == pytest.approx(2.0)


PEAKS = Peaks(
    name="slow", products={"float16": 2.0, "float32": 0.5}, tflops=0.25, memory_gbps=100.0,
    launch_us=1.0,
)  # fmt: skip


def test_roofline():
    found = Roofline(
        kernel="k", target="cpu", timing=Timing((2.0,)), flops=1e9, nbytes=1e8, peaks=PEAKS,
        dtype="float16",
    )  # fmt: skip
    assert found.gflops == pytest.approx(500)
    assert found.gbps == pytest.approx(50)
    assert found.peak_gflops == 2000
    assert found.attainable_ms == pytest.approx(1.0)
    assert found.bound == "memory"
    assert found.fraction == pytest.approx(0.5)
    assert str(found).splitlines() == [
        "k on cpu (slow): 2 ms (95 %), 1 call by host clock",
        "               achieved       peak",
        "  arithmetic        500       2000 GFLOP/s  25.0%",
        "  memory             50        100 GB/s     50.0%  <- bound",
        "  50.0% of the roofline, at 10 operations per byte",
    ]


def test_roofline_of_types_without_a_row():
    found = Roofline(
        kernel="k", target="cpu", timing=Timing((2.0,)), flops=1e9, nbytes=1, peaks=PEAKS,
        dtype="int8",
    )  # fmt: skip
    assert (found.peak_gflops, found.bound) == (500, "arithmetic")


n = T.dynamic("n")


@T.prim_func
def accumulate(A: T.Tensor((n, 32), "float16"), B: T.Tensor((n, 32), "float32"), s: T.float32):
    with T.Kernel(n) as bx:
        for i in T.Parallel(32):
            B[bx, i] += A[bx, i]


def test_bytes_of_tensors():
    assert tensor_traffic(accumulate.kernel, {"n": 10}) == 10 * 32 * (2 + 4 + 4)


def test_roofline_of_a_kernel():
    kernel = tile.compile(accumulate, target="cpu")
    profiler = kernel.get_profiler()
    sizes = {"n": 64, "s": 2}
    found = profiler.roofline(sizes, peaks=PEAKS, timing=Timing((1.0,)))
    assert found.flops == 64 * 32
    assert found.nbytes == 64 * 32 * 10
    assert found.dtype == ""
    given = profiler.roofline(sizes, peaks=PEAKS, n_warmup=1, n_repeat=2, flops=5.0, nbytes=7.0)
    assert (given.flops, given.nbytes, given.timing.calls) == (5.0, 7.0, 2)


def test_peaks_of_machines():
    from tile_api.timing.roofline import peaks_for
    from tile_core.plugins.host import default_host
    from tile_core.target import Target

    found = peaks_for(Target("cuda", "sm_80"), default_host())
    assert found.products["float16"] == pytest.approx(312, rel=0.01)
    assert found.tflops == pytest.approx(19.5, rel=0.01)
    row = peaks_for(Target("cpu", "x86-64-v3"), default_host())
    assert row.memory_gbps > 0
    assert "float32" in row.products
    with pytest.raises(UnsupportedOnTarget, match="nobody knows what"):
        peaks_for(Target("cuda", "sm_80", "sim"), default_host())


def test_peaks_of_this_machine_are_measured():
    from tile_cpu.measured_peak import peaks_of

    found = peaks_of("", seconds=0.01)
    assert found.tflops > 0
    assert found.memory_gbps > 0
    assert "measured" in found.name
