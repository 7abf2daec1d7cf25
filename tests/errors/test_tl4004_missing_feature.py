"""TL4004: a kernel was compiled for instructions this machine does not have."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import MissingFeature
from tile_cpu import machine as machines

PROGRAM = """
@T.prim_func
def kernel(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        A[0] = 1.0
"""
EXPECTED = """\
[TL4004] code for 'skylake-avx512' cannot run on this machine (haswell): it lacks avx512bw, \
avx512cd, avx512dq, avx512f, avx512vl
hint: compile for target 'cpu'; the assembly of a foreign target can still be read"""


def test_message(program, monkeypatch):
    here = machines.machine("haswell")
    monkeypatch.setattr(machines, "host_machine", lambda: here)
    kernel = tile.compile(program(PROGRAM)["kernel"], target="cpu:skylake-avx512")
    assert "vmovss" in kernel.asm or "movl" in kernel.asm
    with pytest.raises(MissingFeature) as caught:
        kernel(np.zeros(16, np.float32))
    assert isinstance(caught.value, RuntimeError)
    assert str(caught.value) == EXPECTED
