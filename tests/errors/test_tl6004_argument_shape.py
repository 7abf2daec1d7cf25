"""TL6004: the rank or a dimension of an argument is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentShapeError

PROGRAM = """
n = T.dynamic("n")

@T.prim_func
def add(A: T.Tensor((n, 4), "float32"),
        B: T.Tensor((n,), "float32")):
    with T.Kernel(n) as bx:
        B[bx] += A[bx, 0]
"""
EXPECTED = """\
[TL6004] add.B.shape[0]: expected n = 3, got 5
note: the parameter is declared here
 --> program.py:5:9
  |
5 |         B: T.Tensor((n,), "float32")):
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: n is 3 because of A.shape[0]
hint: pass a tensor of that extent; T.dynamic declares dimensions of any extent"""
RANK = """\
[TL6004] add.A.ndim: expected 2 [n, 4], got 1 [3]
note: the parameter is declared here
 --> program.py:4:9
  |
4 | def add(A: T.Tensor((n, 4), "float32"),
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: reshape it to 2 dimensions"""

LEFT_OUT = """
m, n = T.dynamic("m"), T.dynamic("n")

@T.prim_func
def both(A: T.Tensor((m,), "int32"), B: T.Tensor((m,), "int32"), C: T.Tensor((1,), "int32")):
    with T.Kernel(1):
        C[0] = m

@T.prim_func
def double(A: T.Tensor((2 * n,), "int32"), C: T.Tensor((1,), "int32")):
    with T.Kernel(1):
        C[0] = n
"""
UNKNOWN_OF_TWO = """\
[TL6004] both.A: None was passed, and no other argument tells the value of m
note: the parameter is declared here
 --> program.py:4:10
  |
4 | def both(A: T.Tensor((m,), "int32"), B: T.Tensor((m,), "int32"), C: T.Tensor((1,), "int32")):
  |          ^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pass a tensor of that shape: the kernel does not read it"""
UNKNOWN_OF_DOUBLE = """\
[TL6004] double.A: None was passed, and no other argument tells the value of n
note: the parameter is declared here
 --> program.py:9:12
  |
9 | def double(A: T.Tensor((2 * n,), "int32"), C: T.Tensor((1,), "int32")):
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pass a tensor of that shape: the kernel does not read it"""


def test_messages(program):
    kernel = tile.compile(program(PROGRAM)["add"], target="interpret")
    for shapes, expected in ((((3, 4), (5,)), EXPECTED), (((3,), (3,)), RANK)):
        with pytest.raises(ArgumentShapeError) as caught:
            kernel(*[np.zeros(shape, np.float32) for shape in shapes])
        assert str(caught.value) == expected
        assert isinstance(caught.value, RuntimeError)


def test_sizes_that_no_tensor_tells(program):
    functions, result = program(LEFT_OUT), np.zeros(1, np.int32)
    for name, args, expected in (
        ("both", (None, None, result), UNKNOWN_OF_TWO),
        ("double", (None, result), UNKNOWN_OF_DOUBLE),
    ):
        for target in ("interpret", "cpu"):
            with pytest.raises(ArgumentShapeError) as caught:
                tile.compile(functions[name], target=target)(*args)
            assert str(caught.value) == expected
