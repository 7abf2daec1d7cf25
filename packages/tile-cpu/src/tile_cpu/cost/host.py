"""How fast the processor at hand is: its row of the table, corrected by what was measured once."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tile_core.environment import cache_home
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.machine import host_machine
from tile_cpu.speeds import CpuSpeeds, speeds

MEASURED = 1
"""Version of the file of measurements: raised when they mean something else."""

SECONDS = 0.15
"""For the measurement."""


def speeds_of(arch: str, name: str = "") -> CpuSpeeds:
    """Return the speeds of a target: measured, if it is the processor at hand.

    `arch` stands behind ``cpu:``; a `name` is a row of the table to use as it is.

    Raises
    ------
    TargetError
        If there is no such row.
    """
    if name or arch not in ("", "native", "host"):
        return speeds(arch, name)
    return host_speeds()


@lru_cache(maxsize=1)
def host_speeds() -> CpuSpeeds:
    """Return the speeds of the processor at hand.

    Its clock under vector load is measured the first time, and kept in the folder of caches
    (`tile_core.environment.cache_home`). Everything else is that of its row: what memory delivers
    just now depends on who else uses it.
    """
    cpu = host_machine()
    row = speeds("", cpu.name)
    clock = _kept(cpu)
    if clock is None:
        clock = _measured_ghz(cpu, row)
        _keep(cpu, clock)
    return replace(row, name=f"{row.name} at {clock:.2f} GHz", clock_ghz=clock)


def _measured_ghz(cpu: CpuMachine, row: CpuSpeeds) -> float:
    from tile_cpu.measured_peak import measure_fma_gflops

    gflops = measure_fma_gflops(cpu, SECONDS)
    return round(gflops / (2 * cpu.lanes(32) * row.multiply_adds), 2)


def _place(cpu: CpuMachine) -> Path:
    return cache_home() / f"speeds-{cpu.name}-{MEASURED}.json"


def _kept(cpu: CpuMachine) -> float | None:
    try:
        clock = float(json.loads(_place(cpu).read_text())["clock_ghz"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return clock if clock > 0 else None


def _keep(cpu: CpuMachine, clock: float) -> None:
    """Write the file at once or not at all; a folder that cannot be written to is no harm."""
    place = _place(cpu)
    text = json.dumps({"clock_ghz": clock})
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, delete=False) as file:
            aside = Path(file.name)
            try:
                file.write(text)
                file.flush()
                os.replace(aside, place)
            except OSError:
                aside.unlink()
