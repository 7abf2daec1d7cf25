"""The contract on ARM processors, emulated by qemu, where tensors end at unreadable pages.

``TILE_TEST_ARM=all pytest tests/conformance/test_arm_machines.py`` runs every case on each of them.
"""

from __future__ import annotations

import os

import pytest

from support.qemu import QEMU, WHY_NOT, check_arm
from tile_core.testing.conformance.catalogue import all_cases

pytestmark = pytest.mark.skipif(QEMU is None, reason=WHY_NOT)

MACHINES = {
    "aarch64": 41,  # what every processor has
    "neoverse-n1": 37,  # dot products of bytes, atomics
    "neoverse-v2": 11,  # dot products of bfloat16 and of bytes of both signs
}
"""Which machine, and how seldom a case is run on it."""

NAMES = [case.name for case in all_cases()]
EVERY = os.environ.get("TILE_TEST_ARM") == "all"


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        pytest.param(machine, name, id=f"{machine}-{name}")
        for machine, share in MACHINES.items()
        for name in NAMES[:: 1 if EVERY else share]
    ],
)
def test_arm_machine(machine: str, name: str) -> None:
    check_arm(name, machine)
