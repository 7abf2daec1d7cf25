"""Which processors are which machine, for all numbers of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

from tile_cpu.arm_machines import ARM_MACHINES, match_arm
from tile_cpu.x86_machines import X86_MACHINES, match_host

Golden = Callable[..., None]


def runs(found: Mapping[int, str]) -> Iterator[str]:
    """Return which numbers have which answer."""
    for name, some in groupby(found.items(), key=lambda pair: pair[1]):
        numbers = [n for n, _ in some]
        yield f"  {numbers[0]:#x} to {numbers[-1]:#x}: {name}"


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
