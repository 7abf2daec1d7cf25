"""Kernels of the developer tier on Hopper: what they compute, and what they become.

Nothing in them speaks of Hopper but the sizes of their tiles: see `support.hopper_examples`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import pytest

from support.example_files import load
from support.hopper_examples import CASES, ODD, machine_code, program
from support.nvrtcs import NVRTCS

SCHEDULES = {"forward": "late", "random:5": "random"}
CHECKS = [(name, k) for name, case in CASES.items() for k in range(len(case.checks))]


@lru_cache(maxsize=1)
def example(name: str) -> Any:
    """Return the file of an example, which keeps its kernels for another schedule."""
    return load(name)


@pytest.mark.in_turn(8)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "number"), CHECKS)
def test_emulated(name: str, number: int, schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are right, and no check of the emulator finds anything."""
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_90a@sim")
    monkeypatch.setenv("TILE_SIM_SCHEDULE", schedule)
    monkeypatch.setenv("TILE_SIM_ASYNC", SCHEDULES[schedule])
    case = CASES[name]
    example(case.example).check(*case.checks[number], **case.tiles)


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("name", ODD)
def test_sizes_that_no_engine_copies(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_TARGET", "cuda:sm_90a@sim")
    monkeypatch.setenv("TILE_SIM_SCHEDULE", "random:7")
    monkeypatch.setenv("TILE_SIM_ASYNC", "random")
    CASES[name].check(*ODD[name])


@pytest.mark.parametrize("name", CASES)
def test_the_text_multiplies_by_warpgroups_what_others_have_copied(name: str) -> None:
    text = program(name).text("source")
    assert "no producer warps" not in "".join(r.message for r in program(name).remarks)
    assert re.search(r"wgmma_[rs]s(_set)?<", text)
    assert not re.search(r"mma_m\d", text)
    assert "tile::tma_load" in text
    assert "cp_async<" not in text
    assert "registers_increase<" in text


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("nvrtc", NVRTCS[:1], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_the_machine_code_has_the_instructions_of_hopper(name: str, nvrtc: Any) -> None:
    case, code = CASES[name], machine_code(name, nvrtc)
    found = {opcode.split(".")[0] for opcode in code.counts}
    assert {case.products, "UTMALDG", "SYNCS", "USETMAXREG"} <= found
    assert not found & {"HMMA", "IMMA", "LDL", "STL"}
    assert code.spills == 0
    assert not re.search(r"\(C75\d\d\)", code.log)
