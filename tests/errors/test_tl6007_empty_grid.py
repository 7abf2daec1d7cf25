"""TL6007: a launch dimension is zero or negative."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import EmptyGridError

PROGRAM = """
n = T.dynamic("n")

@T.prim_func
def increment(A: T.Tensor((n,), "float32")):
    with T.Kernel(2, T.ceildiv(n, 64)) as (bx, by):
        for i in T.Parallel(64):
            A[by * 64 + i] += 1.0
"""
EXPECTED = """\
[TL6007] increment: the grid's y extent (n + 63) // 64 is 0; it must be at least 1
 --> program.py:5:5
  |
5 |     with T.Kernel(2, T.ceildiv(n, 64)) as (bx, by):
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: n is 0
hint: do not call the kernel when there is nothing to do"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    with pytest.raises(EmptyGridError) as caught:
        kernel(np.ones(0, np.float32))
    assert str(caught.value) == EXPECTED


def test_an_empty_sum_is_no_empty_grid(program):
    text = """
        m, k = T.dynamic("m, k")
        @T.prim_func
        def sums(A: T.Tensor((m, k), "float32"), B: T.Tensor((m,), "float32")):
            with T.Kernel(m) as bx:
                s = T.alloc_var("float32", 0.0)
                for j in T.serial(k):
                    s += A[bx, j]
                B[bx] = s
    """
    kernel = tile.compile(program(text)["sums"], target="interpret", out_idx=[-1])
    assert kernel(np.ones((3, 0), np.float32)).tolist() == [0.0, 0.0, 0.0]
