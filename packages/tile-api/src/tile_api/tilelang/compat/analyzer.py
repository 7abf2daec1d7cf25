"""`tilelang.tools.Analyzer`: what a kernel will do and how long a model expects it to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """What the cost model tells of a kernel."""

    total_flops: float  # operations of all kinds
    total_global_bytes: float  # that blocks read from tensors and write to them
    estimated_time: float  # in seconds
    expected_tflops: float
    expected_bandwidth_GBps: float  # as the rate above, over that time


class Analyzer:
    """A kernel and a machine; ``Analyzer.analysis(func, arch)`` does both steps at once.

    A `device` is accepted for compatibility: the machine is what kernels are compiled for.
    """

    def __init__(self, fn: Any, device: Any = None) -> None:
        self.fn = fn
        self.device = device

    def calculate(self) -> AnalysisResult:
        """Return the numbers: see `tile_api.cost.estimate`."""
        from tile_api.cost import estimate

        told = estimate(self.fn)
        seconds = told.milliseconds / 1e3
        return AnalysisResult(
            told.total_flops,
            told.global_bytes,
            seconds,
            told.tflops,
            told.global_bytes / max(seconds, 1e-15) / 1e9,
        )

    @classmethod
    def analysis(cls, fn: Any, device: Any = None) -> AnalysisResult:
        """Return the numbers of a traced function."""
        return cls(fn, device).calculate()
