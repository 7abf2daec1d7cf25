"""The model for a machine of which only its peaks are known, or not even these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from tile_core.cost.cost_request import CostQuestion
from tile_core.cost.estimate import Estimate, Part, amount
from tile_core.cost.gpu_speeds import GpuSpeeds
from tile_core.cost.kernel_work import Work, total_traffic

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What a machine does at most.

    Parameters
    ----------
    name
        Of the machine.
    products
        Operations per second of matrix products, in units of 10**12, by the element type of
        the operands; types that are missing are multiplied like ``"float32"``.
    tflops
        The same of other arithmetic.
    memory_gbps
        Bytes per second from and to memory.
    launch_us
        What a launch takes that does nothing.
    units
        Threads or multiprocessors that run blocks.
    cache_gbps
        Bytes per second that all of them get from the last cache that they share; 0: as from
        memory.
    """

    name: str
    products: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    tflops: float
    memory_gbps: float
    launch_us: float
    units: int = 1
    cache_gbps: float = 0.0


CAUTIOUS = Peaks(name="unknown machine", tflops=0.1, memory_gbps=20.0, launch_us=5.0)
"""One core of an ordinary processor: nobody's kernels are slower than that without need."""

UNKNOWN = (
    "the backend has no model of its machine: arithmetic and memory of a slow one, all bytes of "
    "tensors read once per block"
)

FUNCTION_OPERATIONS = 16
"""Operations that a transcendental function counts for where it has no unit of its own."""


def roofline(
    question: CostQuestion, peaks: Peaks = CAUTIOUS, notes: Iterable[str] = ()
) -> Estimate:
    """Return the time that the busiest of arithmetic and memory takes, and that of launches."""
    works = question.work()
    products = totals(w.products for w in works)
    rates = {
        d: peaks.products.get(d, peaks.products.get("float32", peaks.tflops)) for d in products
    }
    multiply = math.fsum(n / rates[d] / 1e9 for d, n in products.items())
    operations = math.fsum(w.operations + FUNCTION_OPERATIONS * w.functions for w in works)
    traffic = total_traffic(works)
    moved = sum(traffic.values())
    parts = (
        Part("matrix products", multiply, _products_why(products, rates)),
        Part(
            "arithmetic",
            operations / peaks.tflops / 1e9,
            f"{amount(operations)}operations at {peaks.tflops:g} TFLOP/s",
        ),
        Part(
            "memory",
            moved / peaks.memory_gbps / 1e6,
            f"{amount(moved)}B at {peaks.memory_gbps:g} GB/s",
        ),
        Part(
            "launch", peaks.launch_us * len(works) / 1e3, f"{len(works)} x {peaks.launch_us:g} us"
        ),
    )
    busiest = max(parts[:3], key=lambda p: p.milliseconds)
    return Estimate(
        kernel=question.kernel.name,
        target=str(question.target),
        machine=peaks.name,
        milliseconds=busiest.milliseconds + parts[3].milliseconds,
        parts=tuple(sorted(parts, key=lambda p: -p.milliseconds)),
        bound=busiest.name,
        flops=merged_flops(works),
        nbytes=traffic,
        notes=(*notes, *merged_notes(works)),
    )


def _products_why(products: Mapping[str, float], rates: Mapping[str, float]) -> str:
    return ", ".join(f"{amount(n)}{d} at {rates[d]:g} TFLOP/s" for d, n in products.items()) or "-"


def totals(counts: Iterable[Mapping[K, float]]) -> dict[K, float]:
    """Return the sum of each entry, in the order of their appearance."""
    found: dict[K, float] = {}
    for each in counts:
        for key, n in each.items():
            found[key] = found.get(key, 0.0) + n
    return found


def merged_flops(works: Iterable[Work]) -> dict[str, float]:
    """Return the operations of several launches by kind."""
    return totals(work.flops() for work in works)


def merged_notes(works: Iterable[Work]) -> tuple[str, ...]:
    """Return what had to be assumed for any of several launches, once each."""
    return tuple(dict.fromkeys(note for work in works for note in work.notes))


def peaks_of(speeds: GpuSpeeds) -> Peaks:
    """Return the stated peaks of a product: all its multiprocessors, at its stated clock."""
    rate = speeds.multiprocessors * speeds.clock_ghz / 1e3
    dtypes = (*speeds.products, "float64")
    products = {dtype: speeds.product_rate(dtype) * rate for dtype in dtypes}
    products["float32"] = speeds.product_rate("float32") * rate
    return Peaks(
        name=speeds.name,
        products=MappingProxyType(products),
        tflops=2.0 * speeds.lanes * rate,
        memory_gbps=speeds.memory_gbps,
        launch_us=speeds.launch_us,
        units=speeds.multiprocessors,
        cache_gbps=speeds.cache_bytes * speeds.multiprocessors * speeds.clock_ghz,
    )
