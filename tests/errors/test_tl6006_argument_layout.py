"""TL6006: strides, offset, device or address of an argument are wrong."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_core.errors import ArgumentLayoutError

PROGRAM = """
@T.prim_func
def increment(A: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] += 1.0
"""
EXPECTED = """\
[TL6006] increment.A.strides[0]: expected 1, got 2
note: the parameter is declared here
 --> program.py:2:15
  |
2 | def increment(A: T.Tensor((16,), "float32")):
  |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pass x.contiguous() or numpy.ascontiguousarray(x), or declare the parameter as \
T.StridedTensor"""


def test_message(program):
    kernel = tile.compile(program(PROGRAM)["increment"], target="interpret")
    with pytest.raises(ArgumentLayoutError) as caught:
        kernel(np.ones(32, np.float32)[::2])
    assert str(caught.value) == EXPECTED
    assert isinstance(caught.value, RuntimeError)


COPIES = """
@T.prim_func
def double(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((128, 64), "float16")
        b = T.alloc_shared((128, 64), "float16")
        T.copy(A, a, prefer_instruction="tma")
        for i, j in T.Parallel(128, 64):
            b[i, j] = a[i, j] * 2
        T.copy(b, B)
"""
BETWEEN = """\
[TL6006] double.A: copies of boxes need an address that is a multiple of 16 bytes, got one that \
lies 6 behind
note: the tensor is declared here
 --> program.py:2:12
  |
2 | def double(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: pass x.clone() or numpy.copy(x): views may begin anywhere, tensors of their own are aligned"""


def test_a_slice_that_engines_cannot_copy(program):
    torch = pytest.importorskip("torch")
    kernel = tile.compile(program(COPIES)["double"], target="cuda:sm_90a@sim")
    memory = torch.arange(128 * 64 + 16) % 7
    memory, out = memory.to(torch.float16), torch.empty(128, 64, dtype=torch.float16)
    skipped = -memory.data_ptr() % 16 // 2 + 3
    part = memory[skipped : skipped + 128 * 64].view(128, 64)
    with pytest.raises(ArgumentLayoutError) as caught:
        kernel(part, out)
    assert str(caught.value) == BETWEEN
    kernel(part.clone(), out)
    assert torch.equal(out, part * 2)
