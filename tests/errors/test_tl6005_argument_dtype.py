"""TL6005: the element type of an argument is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentDtypeError

PROGRAM = """
@T.prim_func
def increment(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] += 1.0
"""
EXPECTED = """\
[TL6005] increment.A.dtype: expected float32, got float64
note: the parameter is declared here
 --> program.py:2:15
  |
2 | def increment(A: T.Tensor((16,), "float32")):
  |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: convert it first: x.to(torch.float32), or x.astype('float32')"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    with pytest.raises(ArgumentDtypeError) as caught:
        kernel(np.ones(16))
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, RuntimeError)
