"""How fast NVIDIA's GPUs are: peaks as their maker states them, by product.

Matrix products, clocks, memory: NVIDIA, "Tesla V100", "Turing", "A100", "GA102", "Ada" and "H100
Tensor Core GPU Architecture" whitepapers, and the data sheets of T4, L40S and H200; without
sparsity, accumulators in float32, per cycle and multiprocessor at the stated boost clock. Lanes:
CUDA C++ Programming Guide, "Arithmetic Instructions". Bandwidth of the second-level cache,
latencies, and what products of single warps reach on Hopper, rounded: Jia et al., "Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking"; Luo et al., "Benchmarking and Dissecting the
NVIDIA Hopper GPU Architecture via Microbenchmarking".
"""

from __future__ import annotations

from types import MappingProxyType

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


def _hopper(name: str, arch: str, gbps: float) -> GpuSpeeds:
    return GpuSpeeds(
        name=name,
        arch=arch,
        multiprocessors=132,
        clock_ghz=1.83,
        products=_HOPPER,
        lanes=128,
        double_lanes=64,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=40.0,
        cache_size=50 * _MIB,
        memory_gbps=gbps,
        warp_share=0.62,
        memory_cycles=650.0,
    )


PRODUCTS = (
    GpuSpeeds(
        name="v100",
        arch="sm_70",
        multiprocessors=80,
        clock_ghz=1.53,
        products=_VOLTA,
        lanes=64,
        double_lanes=32,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=18.0,
        cache_size=6 * _MIB,
        memory_gbps=900.0,
        memory_cycles=430.0,
    ),
    GpuSpeeds(
        name="t4",
        arch="sm_75",
        multiprocessors=40,
        clock_ghz=1.59,
        products=_TURING,
        lanes=64,
        double_lanes=2,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=20.0,
        cache_size=4 * _MIB,
        memory_gbps=320.0,
        shared_bytes=64,
        memory_cycles=500.0,
    ),
    GpuSpeeds(
        name="a100",
        arch="sm_80",
        multiprocessors=108,
        clock_ghz=1.41,
        products=_AMPERE,
        lanes=64,
        double_lanes=32,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=40.0,
        cache_size=40 * _MIB,
        memory_gbps=2039.0,
        memory_cycles=570.0,
    ),
    GpuSpeeds(
        name="rtx3090",
        arch="sm_86",
        multiprocessors=82,
        clock_ghz=1.695,
        products=_GEFORCE_AMPERE,
        lanes=128,
        double_lanes=2,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=16.0,
        cache_size=6 * _MIB,
        memory_gbps=936.0,
        memory_cycles=550.0,
    ),
    GpuSpeeds(
        name="orin",
        arch="sm_87",
        multiprocessors=16,
        clock_ghz=1.3,
        products=MappingProxyType({**_GEFORCE_AMPERE, "float16": 1024, "bfloat16": 1024}),
        lanes=128,
        double_lanes=2,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=32.0,
        cache_size=4 * _MIB,
        memory_gbps=204.8,
        memory_cycles=600.0,
    ),
    GpuSpeeds(
        name="rtx4090",
        arch="sm_89",
        multiprocessors=128,
        clock_ghz=2.52,
        products=_GEFORCE_ADA,
        lanes=128,
        double_lanes=2,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=15.0,
        cache_size=72 * _MIB,
        memory_gbps=1008.0,
        memory_cycles=650.0,
    ),
    GpuSpeeds(
        name="l40s",
        arch="sm_89",
        multiprocessors=142,
        clock_ghz=2.52,
        products=_ADA,
        lanes=128,
        double_lanes=2,
        integer_lanes=64,
        function_lanes=16,
        cache_bytes=14.0,
        cache_size=96 * _MIB,
        memory_gbps=864.0,
        memory_cycles=650.0,
    ),
    _hopper("h100", "sm_90", 3352.0),
    _hopper("h200", "sm_90", 4800.0),
    _hopper("h100", "sm_90a", 3352.0),
    _hopper("h200", "sm_90a", 4800.0),
)
"""By architecture, the usual product of each first."""
