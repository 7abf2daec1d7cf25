"""How fast processors are: one row for each that we compile for, and the one at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from tile_core.errors import TargetError
from tile_cpu.machine import host_machine


@dataclass(frozen=True, slots=True)
class CpuSpeeds:
    """What one core of a processor does in a cycle, on vectors of its widest registers."""

    name: str
    clock_ghz: float  # under vector load on all cores
    multiply_adds: float  # fused, of whole vectors
    operations: float  # other arithmetic on whole vectors
    loads: float  # of whole vectors, first-level cache
    stores: float
    l2_bytes: float  # that arrive from the second level when read in order
    l3_bytes: float  # and from the last
    memory_gbps: float  # from memory, that one core gets
    socket_gbps: float  # and that all of them get together


# Ports: Intel, "64 and IA-32 Architectures Optimization Reference Manual"; AMD, "Software
# Optimization Guide for the AMD Zen4 Microarchitecture" and those before it: Zen 4 runs 512-bit
# arithmetic in two halves. Bytes per cycle of the caches are what code reaches that reads in
# order, about half of the width of their ports. Clocks are those of all cores of a typical part.
_INTEL_256 = (2.0, 2.0, 2.0, 1.0, 32.0, 10.0)
_INTEL_512 = (2.0, 2.0, 2.0, 1.0, 48.0, 8.0)
_ZEN_256 = (2.0, 2.0, 2.0, 1.0, 32.0, 16.0)
_ZEN4 = (1.0, 1.5, 1.0, 0.5, 32.0, 16.0)
_ZEN5 = (2.0, 2.0, 2.0, 1.0, 48.0, 20.0)
# Vectors of 128 bits. ARM, "Software Optimization Guide" of each core; Apple, "Apple Silicon CPU
# Optimization Guide".
_NEOVERSE_N = (2.0, 2.0, 2.0, 1.0, 24.0, 8.0)
_NEOVERSE_V = (4.0, 4.0, 3.0, 2.0, 32.0, 12.0)
_APPLE = (4.0, 4.0, 3.0, 2.0, 32.0, 16.0)

SPEEDS = MappingProxyType(
    {
        row.name: row
        for row in (
            #         name         GHz  ports and caches  GB/s: core, socket
            CpuSpeeds("x86-64-v2", 3.0, 1.0, 1.0, 2.0, 1.0, 16.0, 8.0, 12.0, 30.0),
            CpuSpeeds("x86-64-v3", 3.2, *_INTEL_256, 14.0, 50.0),
            CpuSpeeds("x86-64-v4", 2.8, *_INTEL_512, 14.0, 100.0),
            CpuSpeeds("haswell", 3.2, *_INTEL_256, 14.0, 50.0),
            CpuSpeeds("broadwell", 3.0, *_INTEL_256, 14.0, 60.0),
            CpuSpeeds("skylake", 3.8, *_INTEL_256, 18.0, 34.0),
            CpuSpeeds("alderlake", 4.7, *_INTEL_256, 30.0, 70.0),
            CpuSpeeds("skylake-avx512", 2.6, *_INTEL_512, 13.0, 110.0),
            CpuSpeeds("cascadelake", 2.8, *_INTEL_512, 14.0, 120.0),
            CpuSpeeds("cooperlake", 2.9, *_INTEL_512, 14.0, 130.0),
            CpuSpeeds("icelake-server", 2.9, *_INTEL_512, 14.0, 180.0),
            CpuSpeeds("sapphirerapids", 2.8, *_INTEL_512, 14.0, 280.0),
            CpuSpeeds("znver2", 3.3, *_ZEN_256, 20.0, 150.0),
            CpuSpeeds("znver3", 3.5, *_ZEN_256, 25.0, 160.0),
            CpuSpeeds("znver4", 3.7, *_ZEN4, 45.0, 350.0),
            CpuSpeeds("znver5", 4.0, *_ZEN5, 40.0, 450.0),
            CpuSpeeds("aarch64", 2.0, 1.0, 1.0, 1.0, 1.0, 16.0, 6.0, 8.0, 20.0),
            CpuSpeeds("cortex-a72", 1.8, 1.0, 1.0, 1.0, 1.0, 16.0, 6.0, 5.0, 10.0),
            CpuSpeeds("neoverse-n1", 2.8, *_NEOVERSE_N, 20.0, 170.0),
            CpuSpeeds("neoverse-n2", 2.8, *_NEOVERSE_N, 25.0, 250.0),
            CpuSpeeds("neoverse-v1", 2.6, *_NEOVERSE_V, 25.0, 250.0),
            CpuSpeeds("neoverse-v2", 3.2, *_NEOVERSE_V, 35.0, 420.0),
            CpuSpeeds("apple-m1", 3.2, *_APPLE, 55.0, 60.0),
            CpuSpeeds("apple-m2", 3.5, *_APPLE, 80.0, 90.0),
            CpuSpeeds("apple-m3", 4.0, *_APPLE, 80.0, 90.0),
            CpuSpeeds("apple-m4", 4.4, *_APPLE, 90.0, 110.0),
        )
    }
)
"""By the name that stands behind ``cpu:``."""


def speeds(arch: str, name: str = "") -> CpuSpeeds:
    """Return the speeds of the processor called `name`, or else of the target's.

    `arch` stands behind ``cpu:``; empty is the processor at hand.

    Raises
    ------
    TargetError
        If there is no such row.
    """
    wanted = name or arch
    if wanted in ("", "native", "host"):
        wanted = host_machine().name
    if wanted not in SPEEDS:
        raise TargetError(
            f"no speeds are known of a processor called {wanted!r}",
            hint="use one of " + ", ".join(sorted(SPEEDS)),
        )
    return SPEEDS[wanted]


def with_cores(row: CpuSpeeds, cores: int) -> CpuSpeeds:
    """Return a row whose cores together get no more from memory than each gets alone."""
    return replace(row, socket_gbps=min(row.socket_gbps, cores * row.memory_gbps))
