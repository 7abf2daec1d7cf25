"""What is known of each machine, in full: facts of makers' documents, reviewed like code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from itertools import groupby
from typing import Any

import pytest

from tile_cpu.arm_machines import ARM_MACHINES, match_arm
from tile_cpu.machine import MACHINES
from tile_cpu.x86_machines import X86_MACHINES, match_host
from tile_cuda import machine as cuda
from tile_cuda import speeds as cuda_speeds
from tile_hip import machine as hip
from tile_hip import speeds as hip_speeds

Golden = Callable[..., None]


def said(value: Any) -> str:
    """Return a fact as text that has one order."""
    if isinstance(value, Mapping):
        return ", ".join(f"{said(k)}: {said(v)}" for k, v in value.items())
    if isinstance(value, (set, frozenset)):
        return ", ".join(sorted(map(said, value)))
    if isinstance(value, tuple):
        return f"({', '.join(map(said, value))})"
    return getattr(value, "name", None) or str(value)


NAMES = ("name", "device_names", "mma_instructions")
"""What others list, and tests elsewhere compare."""


def row(of: Any, left_out: tuple[str, ...] = NAMES) -> str:
    """Return the facts of one machine that can be compared."""
    lines = [said(of)]
    for field in fields(of):
        value = getattr(of, field.name)
        if (
            field.name not in left_out
            and not callable(value)
            and value not in (None, "", (), False)
        ):
            lines.append(f"  {field.name}: {said(value)}")
    return "\n".join(lines)


def runs(found: Mapping[int, str]) -> Iterator[str]:
    """Return which numbers have which answer."""
    for name, some in groupby(found.items(), key=lambda pair: pair[1]):
        numbers = [n for n, _ in some]
        yield f"  {numbers[0]:#x} to {numbers[-1]:#x}: {name}"


def test_processors(golden: Golden) -> None:
    golden("\n".join(map(row, MACHINES.values())))


def test_which_model_is_which_processor(golden: Golden) -> None:
    x86 = frozenset[str]().union(*(m.features for m in X86_MACHINES.values()))
    arm = frozenset[str]().union(*(m.features for m in ARM_MACHINES.values()))
    lines = []
    for vendor in ("AuthenticAMD", "GenuineIntel"):
        for family in (5, 6, 7, *range(22, 28)):
            lines.append(f"{vendor}, family {family}")
            lines += runs({n: match_host(vendor, family, n, x86).name for n in range(256)})
    for implementer in (0x41, 0x61, 0):
        lines.append(f"ARM, implementer {implementer:#x}")
        lines += runs({n: match_arm(implementer, n, arm).name for n in range(0x1000)})
    golden("\n".join(lines))


@pytest.mark.parametrize("module", [cuda, hip], ids=["cuda", "hip"])
def test_generations(module: Any, golden: Golden) -> None:
    machines = map(module.machine, module.ARCHITECTURES)
    golden("\n".join(row(machine, (*NAMES, "features")) for machine in machines))


@pytest.mark.parametrize("module", [cuda_speeds, hip_speeds], ids=["cuda", "hip"])
def test_products(module: Any, golden: Golden) -> None:
    golden("\n".join(map(row, module.PRODUCTS)))
