"""TL6008: a condition stated with `T.assume` or `assert` is false for these arguments."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import AssumptionError, LaunchError

PROGRAM = """
n = T.dynamic("n")

@T.prim_func
def increment(A: T.Tensor((n,), "float32")):
    T.assume(n % 64 == 0)
    with T.Kernel(n // 64) as bx:
        for i in T.Parallel(64):
            A[bx * 64 + i] += 1.0
"""
EXPECTED = """\
[TL6008] Assume: n % 64 == 0 (does not hold for these arguments)
 --> program.py:5:5
  |
5 |     T.assume(n % 64 == 0)
  |     ^^^^^^^^^^^^^^^^^^^^^
note: n is 100
hint: pass arguments for which it holds"""
DIVISION = """\
[TL6001] the condition cannot be computed: integer modulo by zero
 --> program.py:5:5
  |
5 |     T.assume(8 % n == 0)
  |     ^^^^^^^^^^^^^^^^^^^^
note: n is 0
hint: pass arguments for which it is defined"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    a = np.zeros(128, np.float32)
    kernel(a)
    assert a.tolist() == [1.0] * 128
    with pytest.raises(AssumptionError) as caught:
        kernel(a[:100])
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, RuntimeError)


def test_a_condition_that_divides_by_zero(program):
    text = PROGRAM.replace("n % 64", "8 % n").replace("n // 64", "1")
    kernel = tile.compile(program(text)["increment"], target="interpret")
    with pytest.raises(LaunchError) as caught:
        kernel(np.zeros(0, np.float32))
    assert str(caught.value) == DIVISION
