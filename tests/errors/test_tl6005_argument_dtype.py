"""TL6005: the element type of an argument is wrong."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

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


FLOAT8 = """
@T.prim_func
def widened(A: T.Tensor((16,), T.float8_e4m3), B: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(16):
            B[i] = A[i]
"""
ANOTHER_FORMAT = """\
[TL6005] widened.A.dtype: expected float8_e4m3fn, got IEEE's float8_e4m3, which ends at 240 and has infinities
note: the parameter is declared here
 --> program.py:2:13
  |
2 | def widened(A: T.Tensor((16,), T.float8_e4m3), B: T.Tensor((16,), "float32")):
  |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: convert it first: x.to(torch.float8_e4m3fn), or x.astype('float8_e4m3fn')"""  # noqa: E501


@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim"])
def test_another_format_of_the_same_name(program, target):
    kernel = tile.compile(program(FLOAT8)["widened"], target=target)
    codes, result = np.arange(0x70, 0x80, dtype=np.uint8), np.zeros(16, np.float32)
    for _ in range(2):
        with pytest.raises(ArgumentDtypeError) as caught:
            kernel(codes.view(ml_dtypes.float8_e4m3), result)
        assert str(caught.value) == ANOTHER_FORMAT
        kernel(codes.view(ml_dtypes.float8_e4m3fn), result)
        numbers = [*range(128, 256, 16), *range(256, 480, 32), np.nan]
        assert np.array_equal(result, numbers, equal_nan=True)
        result[:] = 0
        kernel(torch.from_numpy(codes).view(torch.float8_e4m3fn), torch.from_numpy(result))
        assert np.array_equal(result, numbers, equal_nan=True)
