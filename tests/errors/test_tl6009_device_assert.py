"""TL6009: a `T.device_assert` inside a kernel failed."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import DeviceAssertError

PROGRAM = """
@T.prim_func
def roots(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.serial(16):
            T.device_assert(A[i] >= 0.0, "negative input")
            A[i] = T.sqrt(A[i])
"""
EXPECTED = """\
[TL6009] device assertion failed: negative input
 --> program.py:5:13
  |
5 |             T.device_assert(A[i] >= 0.0, "negative input")
  |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"""


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_message(target, program):
    kernel = tile.compile(program(PROGRAM)["roots"], target=target)
    a = np.array([4.0] * 15 + [-1.0], np.float32)
    with pytest.raises(DeviceAssertError) as caught:
        kernel(a)
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_a_condition_without_a_message_is_its_own(target, program):
    text = PROGRAM.replace(', "negative input"', "")
    kernel = tile.compile(program(text)["roots"], target=target)
    with pytest.raises(DeviceAssertError) as caught:
        kernel(np.full(16, -1.0, np.float32))
    assert caught.value.message == "device assertion failed: A[i] >= 0.0"
