"""The contract on other processors than this one; what this one lacks is emulated."""

from __future__ import annotations

import pytest

from support.covering import covering, types_of
from support.emulated_features import can_run
from support.guarded import check_guarded
from tile_core.testing.conformance.catalogue import all_cases
from tile_cpu.machine import MACHINES

OTHERS = {
    "znver3": 5,  # AVX2 only: half as many lanes and registers, no dot products of bytes
    "skylake-avx512": 8,  # AVX-512 without those of bytes and of bfloat16
}
"""Which machine, and how seldom a case that multiplies nothing is run on it, beside one of each
type; of products a third."""

PRODUCTS = [case for case in all_cases() if case.name.startswith("gemm/")]
REST = [case for case in all_cases() if not case.name.startswith("gemm/")]


def classes_of_row(machine: str, name: str) -> set[str]:
    """Return what a case on a machine stands for."""
    return {machine + each for each in types_of(name)}


@pytest.mark.in_turn(12, classes=classes_of_row)
@pytest.mark.parametrize(
    ("machine", "name"),
    [
        pytest.param(machine, case.name, id=f"{machine}-{case.name}")
        for turn, (machine, share) in enumerate(OTHERS.items())
        if can_run(MACHINES[machine])
        for case in (*PRODUCTS[turn::3], *covering(REST, share, turn, types_of))
    ],
)
def test_other_machine(machine: str, name: str) -> None:
    check_guarded(name, f"cpu:{machine}")
