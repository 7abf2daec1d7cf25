"""TL6001: an argument at call time is not what the kernel was compiled for."""

from __future__ import annotations

import pytest

import tile_api as tile
from tile_core.errors import LaunchError

PROGRAM = """
@T.prim_func
def increment(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] += 1.0
"""
EXPECTED = """\
[TL6001] increment.A: expected a tensor, got None
note: the parameter is declared here
 --> program.py:2:15
  |
2 | def increment(A: T.Tensor((16,), "float32")):
  |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: None stands for tensors that the kernel never reads or writes"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    with pytest.raises(LaunchError) as caught:
        kernel(None)
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, ValueError)
