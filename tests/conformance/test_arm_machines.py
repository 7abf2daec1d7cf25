"""The contract on ARM processors, emulated by qemu, where tensors end at unreadable pages.

With ``TILE_TEST_TURN=all`` every case is run on each of them.
"""

from __future__ import annotations

import os

import pytest

from support.qemu import QEMU, WHY_NOT, check_arm
from support.turns import EVERY, VARIABLE
from tile_core.testing.conformance.catalogue import all_cases

pytestmark = pytest.mark.skipif(QEMU is None, reason=WHY_NOT)

MACHINES = {
    "aarch64": 41,  # what every processor has
    "neoverse-n1": 37,  # dot products of bytes, atomics
    "neoverse-v2": 11,  # dot products of bfloat16 and of bytes of both signs
}
"""Which machine, and how seldom a case is run on it."""

NAMES = [case.name for case in all_cases()]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(
    ("machine", "name"),
    [
        pytest.param(machine, name, id=f"{machine}-{name}")
        for machine, share in MACHINES.items()
        for name in NAMES[:: 1 if os.environ.get(VARIABLE) == EVERY else share]
    ],
)
def test_arm_machine(machine: str, name: str) -> None:
    check_arm(name, machine)
