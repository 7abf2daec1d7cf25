"""The contract on ARM processors, emulated by qemu, where tensors end at unreadable pages."""

from __future__ import annotations

import pytest

from support.qemu import QEMU, WHY_NOT, check_arm
from tile_core.testing.conformance.catalogue import all_cases

pytestmark = pytest.mark.skipif(QEMU is None, reason=WHY_NOT)

MACHINES = {
    "aarch64": 100,  # what every processor has
    "neoverse-n1": 100,  # dot products of bytes, atomics
    "neoverse-v2": 40,  # dot products of bfloat16 and of bytes of both signs
}
"""Which machine, and how seldom a commit runs a case on it."""


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        pytest.param(machine, case.name, id=f"{machine}-{case.name}", marks=pytest.mark.in_turn(n))
        for machine, n in MACHINES.items()
        for case in all_cases()
    ],
)
def test_arm_machine(machine: str, name: str) -> None:
    check_arm(name, machine)
