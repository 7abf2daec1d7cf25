"""Launches in the script form of TVM: refused by name, inside of T.Kernel and outside."""

from __future__ import annotations

import pytest

import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget


def outside():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        bx = T.launch_thread("blockIdx.x", 2)
        A[bx] = 1.0


def as_a_context():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.launch_thread("threadIdx.x", 32) as tx:
            A[tx] = 1.0


def inside():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32):
            tx = T.launch_thread("threadIdx.x", 32)
            A[tx] = 1.0


@pytest.mark.parametrize("program", [outside, as_a_context, inside])
def test_message(program):
    with pytest.raises(UnsupportedOnTarget) as caught:
        program()
    error = caught.value
    assert error.code == "TL4001"
    assert error.message == "T.launch_thread belongs to the script form of another compiler"
    assert error.hint == "write the statement in Python: if, while, for, names, T.Kernel"
    assert error.span is not None
    assert error.span.file == __file__
