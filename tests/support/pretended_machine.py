"""Tests as another processor sees them: what detection finds here is masked.

``TILE_TEST_MACHINE=znver3 pytest tests/unit/tile_cpu`` runs them as a processor with AVX2 does,
``TILE_TEST_MACHINE=znver4,avx512vnni,avx512bf16`` as one under a hypervisor that hides these two.
Nothing can be added: what this processor lacks stays off.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

from tile_cpu import machine as machines
from tile_cpu.cpu_machine import CpuMachine

VARIABLE = "TILE_TEST_MACHINE"


def pretended(wanted: str, here: CpuMachine) -> CpuMachine:
    """Return the machine `wanted`, a row less features, as detection would find it on `here`."""
    name, *hidden = wanted.split(",")
    row = machines.MACHINES[name]
    features = (row.features & here.features) - set(hidden)
    lacking = tuple(sorted(row.features - features))
    return replace(row, features=features, disabled=lacking)


def pretend_from_environment() -> None:
    """Make detection find what `VARIABLE` asks for, if it is set; before others import it."""
    wanted = os.environ.get(VARIABLE)
    if wanted:
        found = pretended(wanted, machines.host_machine())
        machines.host_machine = cache(lambda: found)
