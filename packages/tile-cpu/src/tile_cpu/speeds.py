"""How fast x86 processors are: one row for each that we compile for, and the one at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from tile_core.errors import TargetError
from tile_cpu.machine import host_machine


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSpeeds:
    """What one core of a processor does in a cycle, on vectors of its widest registers.

    Parameters
    ----------
    clock_ghz
        Under vector load on all cores.
    multiply_adds
        Fused multiply-adds of whole vectors per cycle.
    operations
        Other arithmetic on whole vectors per cycle.
    loads, stores
        Whole vectors per cycle, first-level cache.
    l2_bytes, l3_bytes
        Bytes per cycle that arrive from the second and the last level when read in order.
    memory_gbps
        Bytes per second from memory that one core gets.
    socket_gbps
        And that all of them get together.
    """

    name: str
    clock_ghz: float
    multiply_adds: float
    operations: float
    loads: float
    stores: float
    l2_bytes: float
    l3_bytes: float
    memory_gbps: float
    socket_gbps: float


def _row(
    name: str,
    clock: float,
    multiply_adds: float,
    operations: float,
    loads: float,
    stores: float,
    l2_l3: tuple[float, float],
    memory: tuple[float, float],
) -> CpuSpeeds:
    return CpuSpeeds(
        name=name,
        clock_ghz=clock,
        multiply_adds=multiply_adds,
        operations=operations,
        loads=loads,
        stores=stores,
        l2_bytes=l2_l3[0],
        l3_bytes=l2_l3[1],
        memory_gbps=memory[0],
        socket_gbps=memory[1],
    )


# Ports: Intel, "64 and IA-32 Architectures Optimization Reference Manual"; AMD, "Software
# Optimization Guide for the AMD Zen4 Microarchitecture" and those before it: Zen 4 runs 512-bit
# arithmetic in two halves. Bytes per cycle of the caches are what code reaches that reads in
# order, about half of the width of their ports. Clocks are those of all cores of a typical part.
_INTEL_256 = (2.0, 2.0, 2.0, 1.0, (32.0, 10.0))
_INTEL_512 = (2.0, 2.0, 2.0, 1.0, (48.0, 8.0))
_ZEN_256 = (2.0, 2.0, 2.0, 1.0, (32.0, 16.0))
_ZEN4 = (1.0, 1.5, 1.0, 0.5, (32.0, 16.0))
_ZEN5 = (2.0, 2.0, 2.0, 1.0, (48.0, 20.0))

SPEEDS = MappingProxyType(
    {
        row.name: row
        for row in (
            #    name            GHz  ports and caches   GB/s: core, socket
            _row("x86-64-v2", 3.0, 1.0, 1.0, 2.0, 1.0, (16.0, 8.0), (12.0, 30.0)),
            _row("x86-64-v3", 3.2, *_INTEL_256, (14.0, 50.0)),
            _row("x86-64-v4", 2.8, *_INTEL_512, (14.0, 100.0)),
            _row("haswell", 3.2, *_INTEL_256, (14.0, 50.0)),
            _row("broadwell", 3.0, *_INTEL_256, (14.0, 60.0)),
            _row("skylake", 3.8, *_INTEL_256, (18.0, 34.0)),
            _row("alderlake", 4.7, *_INTEL_256, (30.0, 70.0)),
            _row("skylake-avx512", 2.6, *_INTEL_512, (13.0, 110.0)),
            _row("cascadelake", 2.8, *_INTEL_512, (14.0, 120.0)),
            _row("cooperlake", 2.9, *_INTEL_512, (14.0, 130.0)),
            _row("icelake-server", 2.9, *_INTEL_512, (14.0, 180.0)),
            _row("sapphirerapids", 2.8, *_INTEL_512, (14.0, 280.0)),
            _row("znver2", 3.3, *_ZEN_256, (20.0, 150.0)),
            _row("znver3", 3.5, *_ZEN_256, (25.0, 160.0)),
            _row("znver4", 3.7, *_ZEN4, (45.0, 350.0)),
            _row("znver5", 4.0, *_ZEN5, (40.0, 450.0)),
        )
    }
)
"""By the name that stands behind ``cpu:``."""


def speeds(arch: str, name: str = "") -> CpuSpeeds:
    """Return the speeds of the processor called `name`, or else of the target's.

    Parameters
    ----------
    arch
        What stands behind ``cpu:``; empty for the processor at hand.

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
