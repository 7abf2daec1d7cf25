"""Tests that ask which machine this is pass on lesser ones: some of them run as there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.pretended_machine import VARIABLE, pretended
from tile_cpu.machine import MACHINES, host_machine, missing_features

HERE = Path(__file__).parent
LESSER = {
    "znver3": ("avx2",),
    "znver4,avx512vnni,avx512bf16": ("avx512f",),
}
"""What is pretended, and what a processor must have for that to be another machine."""

SOME = "tile_gemm_on_ready or who_packs"


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", LESSER)
def test_products(name: str) -> None:
    if not host_machine().has(*LESSER[name]):
        pytest.skip("this machine is a lesser one")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", SOME]
        + [str(HERE / "test_gemm_kernels.py")],
        env={**os.environ, VARIABLE: name},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_nothing_is_added() -> None:
    old, new = MACHINES["znver3"], MACHINES["sapphirerapids"]
    assert pretended("znver3", new) == old
    assert not missing_features(pretended("sapphirerapids", old), old)


def test_what_is_hidden_is_off() -> None:
    found = pretended("znver4,avx512vnni,avx512bf16", MACHINES["znver4"])
    assert found.disabled == ("avx512bf16", "avx512vnni")
    assert found.vector_bytes == 64
    assert not found.has("avx512vnni")
