"""The processors we compile for, and which of them this process runs on."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from tile_core.errors import MissingFeature, TargetError
from tile_cpu import arm_machines, x86_machines
from tile_cpu.cpu_machine import CpuMachine, Isa, host_isa
from tile_cpu.host_caches import linux_caches, macos_caches, with_caches

MACHINES = {**x86_machines.X86_MACHINES, **arm_machines.ARM_MACHINES}
"""By the name that stands behind ``cpu:``."""


def machine(name: str) -> CpuMachine:
    """Return the machine called `name`; empty, ``native`` or ``host`` mean this one.

    Raises
    ------
    TargetError
        If there is no such row.
    """
    if name in ("", "native", "host"):
        return host_machine()
    if name not in MACHINES:
        raise TargetError(
            f"no processor is called {name!r}",
            hint="use one of " + ", ".join(sorted(MACHINES)) + ", or 'cpu' for this machine",
        )
    return MACHINES[name]


@lru_cache(maxsize=1)
def host_machine() -> CpuMachine:
    """Return the machine this process runs on, with the caches that the system tells of.

    Reads ``/proc/cpuinfo``; of caches that nothing tells, the row's facts hold. Where there is no
    such file, on macOS, the system is asked for the name of an ARM processor; an x86 processor is
    the generic ``x86-64-v3``.

    Raises
    ------
    TargetError
        If the processor is neither an x86-64 nor an AArch64.
    """
    isa, source = host_isa(), Path("/proc/cpuinfo")
    if source.exists():
        found = parse_cpuinfo(source.read_text(errors="replace"), isa)
        return with_caches(found, linux_caches())
    if isa is Isa.AARCH64:
        found = arm_machines.apple_machine(arm_machines.macos_brand())
        return with_caches(found, macos_caches())
    return MACHINES["x86-64-v3"]


def parse_cpuinfo(text: str, isa: Isa = Isa.X86_64) -> CpuMachine:
    """Return the machine described by the first processor in a ``/proc/cpuinfo`` text."""
    facts: dict[str, str] = {}
    for line in text.split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        facts[key.strip()] = value.strip()
    described = {Isa.X86_64: x86_machines.described_x86, Isa.AARCH64: arm_machines.described_arm}
    return described[isa](facts)


_LINUX_NAMES = {
    ours: theirs
    for table in (x86_machines.LINUX_SPELLING, arm_machines.LINUX_SPELLING)
    for theirs, ours in table.items()
}


def names_of_linux(features: frozenset[str]) -> list[str]:
    """Return instruction sets as ``/proc/cpuinfo`` calls them, sorted."""
    return sorted(_LINUX_NAMES.get(feature, feature) for feature in features)


def missing_features(wanted: CpuMachine, host: CpuMachine | None = None) -> tuple[str, ...]:
    """Return the features code for `wanted` may use and `host` lacks, sorted.

    Of another instruction set architecture that is the architecture itself.
    """
    have = host or host_machine()
    if wanted.isa is not have.isa:
        return (wanted.isa.value,)
    return tuple(sorted(wanted.features - have.features))


def require_runnable(wanted: CpuMachine, host: CpuMachine | None = None) -> None:
    """Refuse to run code compiled for `wanted` here if it could hit an unknown instruction.

    Raises
    ------
    MissingFeature
        Naming the features this machine lacks.
    """
    lacking = missing_features(wanted, host)
    if lacking:
        here = (host or host_machine()).name
        raise MissingFeature(
            f"code for {wanted.name!r} cannot run on this machine ({here}): "
            f"it lacks {', '.join(lacking)}",
            hint="compile for target 'cpu'; the assembly of a foreign target can still be read",
        )
