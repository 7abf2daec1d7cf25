"""TL6006: strides, offset, device or address of an argument are wrong."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentLayoutError

PROGRAM = """
@T.prim_func
def increment(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] += 1.0
"""
EXPECTED = """\
[TL6006] increment.A.strides[0]: expected 1, got 2
note: the parameter is declared here
 --> program.py:2:15
  |
2 | def increment(A: T.Tensor((16,), "float32")):
  |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pass x.contiguous() or numpy.ascontiguousarray(x), or declare the parameter as \
T.StridedTensor"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    with pytest.raises(ArgumentLayoutError) as caught:
        kernel(np.ones(32, np.float32)[::2])
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, RuntimeError)
