"""TL6003: an argument is of the wrong kind: a number for a tensor, or the reverse."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentTypeError

PROGRAM = """
@T.prim_func
def scale(A: T.Tensor((16,), "float32"), n: T.int32):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] *= n
"""
EXPECTED = """\
[TL6003] scale.A: expected a tensor, got int
note: the parameter is declared here
 --> program.py:2:11
  |
2 | def scale(A: T.Tensor((16,), "float32"), n: T.int32):
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pass a NumPy array, a torch tensor or another DLPack producer"""
REVERSE = """\
[TL6003] scale.n: expected an int (int32), got ndarray
note: the parameter is declared here
 --> program.py:2:42
  |
2 | def scale(A: T.Tensor((16,), "float32"), n: T.int32):
  |                                          ^^^^^^^^^^
hint: convert it: int(x), float(x) or bool(x)"""


def test_messages(program):
    kernel = tile.compile(program(PROGRAM)["scale"], target="interpret")
    tensor = np.zeros(16, np.float32)
    for args, expected in (((3, 3), EXPECTED), ((tensor, tensor), REVERSE)):
        with pytest.raises(ArgumentTypeError) as caught:
            kernel(*args)
        assert str(caught.value) == expected
        assert isinstance(caught.value, TypeError)
