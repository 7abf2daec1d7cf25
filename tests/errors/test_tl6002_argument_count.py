"""TL6002: a kernel was called with too few or too many arguments."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_launch
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

SCALE = """
@T.prim_func
def scale(A: T.Tensor((4,), "int32"), x: T.int32, B: T.Tensor((4,), "int32")):
    with T.Kernel(1):
        for i in T.Parallel(4):
            B[i] = A[i] * x
"""
UNKNOWN = """\
[TL6002] scale(A, x) takes no argument 'B'
hint: pass A, x: outputs are returned, not passed"""
TWICE = """\
[TL6002] scale(A, x) got A twice: by position and by name
hint: leave out A=, or what is passed by position in its place"""
MISSING = """\
[TL6002] scale(A, x) got no A
hint: pass every parameter, by position or by name"""
TOO_MANY = """\
[TL6002] scale(A, x) got x twice: by position and by name
hint: leave out x=, or what is passed by position in its place"""


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


@pytest.mark.parametrize("way", ["interpret", "cpu", "saved"])
def test_arguments_by_name(program, tmp_path, way):
    target = "interpret" if way == "interpret" else "cpu"
    kernel = tile.compile(program(SCALE)["scale"], target=target, out_idx=[-1])
    if way == "saved":
        kernel.save(tmp_path / "scale.tile")
        kernel = tile_launch.load(tmp_path / "scale.tile")
    a = np.arange(4, dtype=np.int32)
    for k in range(3):  # the second call is made in C, where there is a C compiler
        for found in (kernel(a, x=k), kernel(x=k, A=a), kernel(a, k)):
            np.testing.assert_array_equal(found, a * k)
    for args, named, expected in (
        ((a,), {"x": 2, "B": a}, UNKNOWN),
        ((a,), {"A": a, "x": 2}, TWICE),
        ((), {"x": 2}, MISSING),
        ((a, 2), {"x": 2}, TOO_MANY),
    ):
        with pytest.raises(TypeError) as caught:
            kernel(*args, **named)
        assert str(caught.value) == expected
