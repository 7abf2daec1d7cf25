"""The processors we compile for, and which of them this process runs on."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tile_core.errors import MissingFeature, TargetError
from tile_cpu import arm_machines, x86_machines
from tile_cpu.cpu_machine import CpuMachine, Isa, host_isa

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
    """Return the machine this process runs on.

    Reads ``/proc/cpuinfo``. Where there is none, on macOS, the system is asked for the name of an
    ARM processor; an x86 processor is the generic ``x86-64-v3``.

    Raises
    ------
    TargetError
        If the processor is neither an x86-64 nor an AArch64.
    """
    isa, source = host_isa(), Path("/proc/cpuinfo")
    if source.exists():
        found = parse_cpuinfo(source.read_text(errors="replace"), isa)
        return replace(found, l3_bytes=_last_level_bytes() or found.l3_bytes)
    if isa is Isa.AARCH64:
        return arm_machines.apple_machine(arm_machines.macos_brand())
    return MACHINES["x86-64-v3"]


def _last_level_bytes() -> int | None:
    """Return the size of the first processor's last-level cache, None if it is not told."""
    source = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    try:
        text = source.read_text().strip()
    except OSError:
        return None
    return int(text[:-1]) * 1024 if text.endswith("K") and text[:-1].isdigit() else None


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
