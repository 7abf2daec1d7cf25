"""The contract on other processors than this one; what this one lacks is emulated."""

from __future__ import annotations

import pytest

from support.emulated_features import can_run
from support.guarded import check_guarded
from tile_core.testing.conformance.catalogue import all_cases
from tile_cpu.machine import MACHINES

OTHERS = {
    "znver3": 3,  # AVX2 only: half as many lanes and registers, no dot products of bytes
    "skylake-avx512": 5,  # AVX-512 without those of bytes and of bfloat16
}
"""Which machine, and how seldom a case that multiplies nothing is run on it; of products half."""

NAMES = [case.name for case in all_cases()]


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        pytest.param(machine, name, id=f"{machine}-{name}")
        for turn, (machine, share) in enumerate(OTHERS.items())
        if can_run(MACHINES[machine])
        for at, name in enumerate(NAMES)
        if (at % 2 == turn if name.startswith("gemm/") else at % share == 0)
    ],
)
def test_other_machine(machine: str, name: str) -> None:
    check_guarded(name, f"cpu:{machine}")
