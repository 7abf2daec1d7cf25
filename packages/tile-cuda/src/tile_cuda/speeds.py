"""How fast NVIDIA's GPUs are: peaks as their maker states them, by product.

Matrix products, clocks, memory: NVIDIA, "Tesla V100", "Turing", "A100", "GA102", "Ada" and "H100
Tensor Core GPU Architecture" whitepapers, "RTX Blackwell GPU Architecture", and the data sheets of
T4, L40S, H200, B200, B300, Jetson Thor and DGX Spark (caches of B200 and later: assumed); without
sparsity, accumulators in float32, per cycle and multiprocessor at the stated boost clock; "FP4" and
"FP8" of Blackwell have scales. None of its products has been measured for this table. Lanes:
CUDA C++ Programming Guide, "Arithmetic Instructions". Bandwidth of the second-level cache,
latencies, and what products of single warps reach on Hopper, rounded: Jia et al., "Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking"; Luo et al., "Benchmarking and Dissecting the
NVIDIA Hopper GPU Architecture via Microbenchmarking".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tile_core.cost.gpu_speeds import GpuSpeeds

_MIB = 1 << 20
_VOLTA = MappingProxyType({"float16": 1024})
_TURING = MappingProxyType({"float16": 1024, "int8": 2048, "int4": 4096})
_AMPERE = MappingProxyType(
    {
        "float16": 2048,
        "bfloat16": 2048,
        "tfloat32": 1024,
        "float32": 1024,
        "int8": 4096,
        "int4": 8192,
        "float64": 128,
    }
)
# Of consumer cards: accumulators in float32 halve the rate of float16.
_GEFORCE_AMPERE = MappingProxyType(
    {
        "float16": 512,
        "bfloat16": 512,
        "tfloat32": 256,
        "float32": 256,
        "int8": 2048,
        "int4": 4096,
    }
)
_GEFORCE_ADA = MappingProxyType({**_GEFORCE_AMPERE, "float8": 1024})
_ADA = MappingProxyType(
    {
        "float16": 1024,
        "bfloat16": 1024,
        "tfloat32": 512,
        "float32": 512,
        "int8": 2048,
        "int4": 4096,
        "float8": 2048,
    }
)
_HOPPER = MappingProxyType(
    {
        "float16": 4096,
        "bfloat16": 4096,
        "tfloat32": 2048,
        "float32": 2048,
        "int8": 8192,
        "float8": 8192,
        "float64": 256,
    }
)

_BLACKWELL = MappingProxyType(
    {
        "float16": 8192,
        "bfloat16": 8192,
        "tfloat32": 4096,
        "float32": 4096,
        "int8": 16384,
        "float8": 16384,
        "scaled float8": 16384,
        "scaled float4": 32768,
    }
)
# Instructions with 96 of K, which would multiply 4-bit floats half again as fast, are not used.
_ULTRA = MappingProxyType({**_BLACKWELL, "int8": 512})  # gave its area to other products
# Products with scales have the full rate, also with accumulators in float32.
_RTX_BLACKWELL = MappingProxyType(
    {
        **{k: v for k, v in _GEFORCE_ADA.items() if k != "int4"},
        "scaled float8": 2048,
        "scaled float4": 4096,
    }
)


def _row(
    name: str,
    arch: str,
    multiprocessors: int,
    clock: float,
    products: Mapping[str, int],
    lanes: tuple[int, int],
    gbps: float,
    cache: tuple[float, int],
    cycles: float,
    **others: Any,
) -> GpuSpeeds:
    """Return one product; `lanes` are those of float32 and of float64, `cache` bytes and MiB."""
    return GpuSpeeds(
        name=name,
        arch=arch,
        multiprocessors=multiprocessors,
        clock_ghz=clock,
        products=products,
        lanes=lanes[0],
        double_lanes=lanes[1],
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=cache[0],
        cache_size=cache[1] * _MIB,
        memory_gbps=gbps,
        memory_cycles=cycles,
        **others,
    )


def _hopper(name: str, arch: str, gbps: float) -> GpuSpeeds:
    cache = (40.0, 50)
    return _row(name, arch, 132, 1.83, _HOPPER, (128, 64), gbps, cache, 650.0, warp_share=0.62)


def _blackwell(
    name: str, arch: str, products: Mapping[str, int], doubles: int, gbps: float = 8000.0
) -> GpuSpeeds:
    lanes, cache = (128, doubles), (40.0, 126)
    single = {"warp_share": 0.5}  # products of single warps reach half of the rate
    return _row(name, arch, 148, 1.85, products, lanes, gbps, cache, 650.0, **single)


_ORIN = MappingProxyType({**_GEFORCE_AMPERE, "float16": 1024, "bfloat16": 1024})

PRODUCTS = (
    _row("v100", "sm_70", 80, 1.53, _VOLTA, (64, 32), 900.0, (18.0, 6), 430.0),
    _row("t4", "sm_75", 40, 1.59, _TURING, (64, 2), 320.0, (20.0, 4), 500.0, shared_bytes=64),
    _row("a100", "sm_80", 108, 1.41, _AMPERE, (64, 32), 2039.0, (40.0, 40), 570.0),
    _row("rtx3090", "sm_86", 82, 1.695, _GEFORCE_AMPERE, (128, 2), 936.0, (16.0, 6), 550.0),
    _row("orin", "sm_87", 16, 1.3, _ORIN, (128, 2), 204.8, (32.0, 4), 600.0),
    _row("rtx4090", "sm_89", 128, 2.52, _GEFORCE_ADA, (128, 2), 1008.0, (15.0, 72), 650.0),
    _row("l40s", "sm_89", 142, 2.52, _ADA, (128, 2), 864.0, (14.0, 96), 650.0),
    _hopper("h100", "sm_90", 3352.0),
    _hopper("h200", "sm_90", 4800.0),
    _hopper("h100", "sm_90a", 3352.0),
    _hopper("h200", "sm_90a", 4800.0),
    _blackwell("b200", "sm_100f", _BLACKWELL, 64),
    _blackwell("b200", "sm_100a", _BLACKWELL, 64),
    _blackwell("b300", "sm_103a", _ULTRA, 2),
    _row("thor", "sm_110a", 20, 1.575, _BLACKWELL, (128, 2), 273.0, (40.0, 32), 650.0),
    _row("rtx5090", "sm_120f", 170, 2.407, _RTX_BLACKWELL, (128, 2), 1792.0, (15.0, 96), 650.0),
    _row("rtx5090", "sm_120a", 170, 2.407, _RTX_BLACKWELL, (128, 2), 1792.0, (15.0, 96), 650.0),
    _row("gb10", "sm_121a", 48, 2.525, _RTX_BLACKWELL, (128, 2), 273.0, (15.0, 24), 650.0),
)
"""By architecture, the usual product of each first."""

MULTIPROCESSORS: Mapping[str, int] = MappingProxyType(
    {row.arch: row.multiprocessors for row in reversed(PRODUCTS)}
)
"""How many the usual product of each architecture has."""
