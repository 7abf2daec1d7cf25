"""TL6003: an argument is of the wrong kind: a number for a tensor, or the reverse."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_launch
from tile_core.dtypes import dtype_of
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

SHIFT = """
@T.prim_func
def shift(A: T.Tensor((4,), "float32"), x: T.{dtype}):
    with T.Kernel(1):
        for i in T.Parallel(4):
            A[i] = x
"""
OVERFLOW = """\
[TL6003] shift.x: 1e+300 does not fit float32, whose largest finite value is \
3.4028234663852886e+38
note: the parameter is declared here
 --> program.py:2:41
  |
2 | def shift(A: T.Tensor((4,), "float32"), x: T.float32):
  |                                         ^^^^^^^^^^^^
hint: pass a smaller number, or float('inf') if infinity is meant"""
SAVED = """\
[TL6003] shift.x: 1e+300 does not fit float32, whose largest finite value is \
3.4028234663852886e+38
hint: pass a smaller number, or float('inf') if infinity is meant"""
# A double beyond the greatest finite number that rounds to it, the least that rounds to infinity,
# and the greatest finite number.
EDGES = {
    "float32": (3.4028235677973362e38, 3.4028235677973366e38, 3.4028234663852886e38),
    "float16": (65519.0, 65520.0, 65504.0),
    "bfloat16": (3.395e38, 3.3961775292304601e38, 3.3895313892515355e38),
}


def test_messages(program):
    kernel = tile.compile(program(PROGRAM)["scale"], target="interpret")
    tensor = np.zeros(16, np.float32)
    for args, expected in (((3, 3), EXPECTED), ((tensor, tensor), REVERSE)):
        with pytest.raises(ArgumentTypeError) as caught:
            kernel(*args)
        assert str(caught.value) == expected
        assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("dtype", EDGES)
@pytest.mark.parametrize("way", ["interpret", "cpu", "saved"])
def test_floats_that_would_become_infinity(program, tmp_path, way, dtype):
    target = "interpret" if way == "interpret" else "cpu"
    kernel = tile.compile(program(SHIFT.format(dtype=dtype))["shift"], target=target)
    if way == "saved":
        kernel.save(tmp_path / "shift.tile")
        kernel = tile_launch.load(tmp_path / "shift.tile")
    fits, beyond, largest = EDGES[dtype]
    with np.errstate(over="ignore"):
        rounded = np.array([fits, beyond]).astype(dtype_of(dtype).numpy()).astype(np.float64)
    assert rounded.tolist() == [largest, np.inf]
    a = np.zeros(4, np.float32)
    for _ in range(2):  # the second round meets what the first one left remembered
        for x in (0.5, 3, largest, -largest, float("inf"), -float("inf"), float("nan")):
            kernel(a, x)
            np.testing.assert_array_equal(a, np.float32(x))
        kernel(a, fits)
        np.testing.assert_array_equal(a, np.float32(largest))
        for x in (beyond, -beyond, 1e300, -1e300, 10**100, np.float64(1e300)):
            with pytest.raises(ValueError, match=rf"\[TL6003\].* does not fit {dtype}, whose"):
                kernel(a, x)
    if dtype == "float32":
        with pytest.raises(ValueError, match="TL6003") as caught:
            kernel(a, 1e300)
        assert str(caught.value) == (SAVED if way == "saved" else OVERFLOW)
