"""How fast AMD's GPUs are: peaks as their maker states them, by product.

Matrix products, clocks, memory: AMD, data sheets of "Instinct" MI210, MI250, MI300X and MI355X, and
the "CDNA 2", "CDNA 3" and "CDNA 4 Architecture" white papers; dense, per cycle and compute unit at
the stated peak clock. An MI250 is two devices to a program; one of them stands here. A compute unit
begins an instruction of each of its four units every fourth cycle. Latencies are rounded from
published measurements, and longer than NVIDIA's.
"""

from __future__ import annotations

from types import MappingProxyType

from tile_core.cost.gpu_speeds import GpuSpeeds

_MIB = 1 << 20
_CDNA2 = MappingProxyType(
    {"float16": 1024, "bfloat16": 1024, "float32": 256, "float64": 256, "int8": 1024}
)
_CDNA3 = MappingProxyType(
    {
        "float16": 2048,
        "bfloat16": 2048,
        "tfloat32": 1024,
        "float32": 256,
        "float64": 256,
        "int8": 4096,
        "float8": 4096,
    }
)
_CDNA4 = MappingProxyType(
    {
        "float16": 4096,
        "bfloat16": 4096,
        "float32": 256,
        "float64": 128,
        "int8": 8192,
        "float8": 8192,
    }
)


def _row(
    name: str,
    arch: str,
    units: int,
    clock: float,
    products: MappingProxyType[str, int],
    gbps: float,
    cache: tuple[float, int],
    cycles: float,
) -> GpuSpeeds:
    return GpuSpeeds(
        name=name,
        arch=arch,
        multiprocessors=units,
        clock_ghz=clock,
        products=products,
        lanes=64,
        double_lanes=64,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=cache[0],
        cache_size=cache[1] * _MIB,
        memory_gbps=gbps,
        issue=4.0,
        memory_cycles=cycles,
        shared_cycles=64.0,
        barrier_cycles=40.0,
        launch_us=4.0,
    )


PRODUCTS = (
    _row("mi210", "gfx90a", 104, 1.7, _CDNA2, 1638.0, (32.0, 8), 800.0),
    _row("mi250", "gfx90a", 104, 1.7, _CDNA2, 1638.0, (32.0, 8), 800.0),
    _row("mi300x", "gfx942", 304, 2.1, _CDNA3, 5300.0, (24.0, 256), 1000.0),
    _row("mi355x", "gfx950", 256, 2.4, _CDNA4, 8000.0, (28.0, 256), 1000.0),
)
"""By architecture, the usual product of each first."""
