"""TL6002: a kernel was called with too few or too many arguments."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentCountError, LaunchError

PROGRAM = """
@T.prim_func
def double(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            B[i] = A[i] + A[i]
"""
EXPECTED = """\
[TL6002] double(A) takes 1 argument, got 2
note: B is returned, not passed
hint: pass the arguments in the order of the parameters"""
EAGER = """\
[TL6002] double(A, scale=2): missing a required argument: 'A'
hint: pass every parameter that has no default, by position or by name"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["double"], target="interpret", out_idx=[-1])
    with pytest.raises(ArgumentCountError) as caught:
        kernel(np.zeros(16, np.float32), np.zeros(16, np.float32))
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, (LaunchError, TypeError))


def test_message_of_an_eager_function(program):
    text = """
        def double(A, scale=2):
            A: T.Tensor((16,), "float32")
            with T.Kernel(1):
                A[0] *= scale
    """
    double = tile.jit(program(text)["double"])
    with pytest.raises(ArgumentCountError) as caught:
        double()
    assert str(caught.value) == EAGER
