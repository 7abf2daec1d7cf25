"""TL6010: a dimension has a value that its contract excludes."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_launch
from tile_core.errors import ContractViolation

PROGRAM = """
n = T.dynamic("n", min=64, max=256, multiple_of=64)

@T.prim_func
def increment(A: T.Tensor((n,), "float32")):
    with T.Kernel(n // 64) as bx:
        for i in T.Parallel(64):
            A[bx * 64 + i] += 1.0
"""
EXPECTED = """\
[TL6010] increment: n is 100, which is not a multiple of 64; its contract is \
64 <= n <= 256, n % 64 == 0
 --> program.py:1:1
  |
1 | n = T.dynamic("n", min=64, max=256, multiple_of=64)
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: n is 100 because of A.shape[0]
hint: pad the dimension to 128, or weaken the contract"""
EAGER = """
@tile.jit
def double(A):
    M = T.const("M", multiple_of=16)
    A: T.Tensor((M,), "float32")
    C = T.empty((M,), "float32")
    with T.Kernel(1):
        for i in T.Parallel(M):
            C[i] = A[i] * 2.0
    return C
"""
OF_CONSTANT = """\
[TL6010] double: M is 20, which is not a multiple of 16; its contract is M % 16 == 0
 --> program.py:3:9
  |
3 |     M = T.const("M", multiple_of=16)
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
note: M is 20 because of A.shape[0]
hint: pad the dimension to 32, or weaken the contract"""

SCALAR = """
m = T.dynamic("m", min=4, max=16, multiple_of=4)

@T.prim_func
def add(A: T.Tensor((4,), "int32"), k: m):
    with T.Kernel(1):
        for i in T.Parallel(4):
            A[i] += k
"""
OF_SCALAR = """\
[TL6010] add: k is 6, which is not a multiple of 4; its contract is 4 <= k <= 16, k % 4 == 0
 --> program.py:4:37
  |
4 | def add(A: T.Tensor((4,), "int32"), k: m):
  |                                     ^^^^
hint: pass a number that keeps it, or weaken the contract"""
OF_SAVED_SCALAR = """\
[TL6010] add: k is 6; its contract is 4 <= k <= 16, k % 4 == 0
hint: pass an argument of such a size"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    with pytest.raises(ContractViolation) as caught:
        kernel(np.zeros(100, np.float32))
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    ("size", "told"), [(0, "less than 64"), (320, "more than 256"), (250, "not a multiple of 64")]
)
def test_what_is_wrong_with_a_value(program, size, told):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    with pytest.raises(ContractViolation, match=f"n is {size}, which is {told};"):
        kernel(np.zeros(size, np.float32))


def test_of_a_constant(program):
    double = program(EAGER, tile=tile)["double"]
    with pytest.raises(ContractViolation) as caught:
        double(np.zeros(20, np.float32))
    assert str(caught.value) == OF_CONSTANT
    with pytest.raises(ContractViolation, match="double: M is 20, which is not a multiple of 16"):
        double.compile(M=20)


@pytest.mark.parametrize("way", ["interpret", "cpu", "saved"])
def test_of_a_scalar(program, tmp_path, way):
    kernel = tile.compile(program(SCALAR)["add"], target="interpret" if way[0] == "i" else "cpu")
    if way == "saved":
        kernel.save(tmp_path / "add.tile")
        kernel = tile_launch.load(tmp_path / "add.tile")
    a = np.zeros(4, np.int32)
    for k in (4, 8, 12):
        kernel(a, k)  # the second call is made in C, where there is a C compiler
    for k in (6, 7, -4, 20):
        with pytest.raises(RuntimeError, match=rf"\[TL6010\] add: k is {k}[,;]") as caught:
            kernel(a, k)
        if k == 6:
            assert str(caught.value) == (OF_SAVED_SCALAR if way == "saved" else OF_SCALAR)
    np.testing.assert_array_equal(a, 24)
