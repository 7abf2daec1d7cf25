"""The interpreter as a target: tensors of every library, its checks, and `breakpoint()`."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_core.errors import OutOfBounds, UninitialisedRead
from tile_core.plugins.host import PluginHost


def doubling(dtype, n=8):
    @T.prim_func
    def double(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i] + A[i]

    return double


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "int32", "float8_e4m3fn"])
def test_torch_tensors_share_their_memory(name):
    a = torch.arange(8, dtype=torch.float32).to(getattr(torch, name))
    b = torch.full((8,), 7.0).to(a.dtype)
    tile.compile(doubling(name), target="interpret")(a, b)
    assert b.float().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]


def test_numpy_arrays_of_types_numpy_lacks():
    a = np.arange(8).astype(ml_dtypes.bfloat16)
    kernel = tile.compile(doubling("bfloat16"), target="interpret", out_idx=[1])
    b = kernel(a)
    assert b.dtype == ml_dtypes.bfloat16
    assert b.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_packed_elements():
    @T.prim_func
    def widen(A: T.Tensor((2, 4), "int4"), B: T.Tensor((2, 4), "int32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(2, 4):
                B[i, j] = T.cast(A[i, j], "int32")

    packed = torch.tensor([[0x21, 0x43], [0x0F, 0x78]], dtype=torch.uint8)
    b = torch.full((2, 4), 99, dtype=torch.int32)
    tile.compile(widen, target="interpret")(packed, b)
    assert b.tolist() == [[1, 2, 3, 4], [-1, 0, -8, 7]]


def test_strided_and_grad_requiring_tensors():
    s = T.dynamic("s")

    @T.prim_func
    def double(A: T.StridedTensor((4,), (s,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = A[i] * 2.0

    a = torch.arange(12, dtype=torch.float32, requires_grad=True)[1::3]
    b = torch.full((4,), -1.0)
    tile.compile(double, target="interpret")(a, b)
    assert b.tolist() == [2.0, 8.0, 14.0, 20.0]


def test_the_environment_chooses_it(monkeypatch):
    @T.prim_func
    def leaves(A: T.Tensor((8,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4,), "float32")
            for i in T.serial(n):
                A[i] = s[i]

    monkeypatch.setenv("TILE_INTERPRET", "1")
    kernel = tile.compile(leaves, target="toy")
    assert kernel.target == "interpret"
    with pytest.raises((OutOfBounds, UninitialisedRead)):
        kernel(np.zeros(8, np.float32), 8)


def test_it_shows_its_program():
    kernel = tile.compile(doubling("float32"), target="interpret")
    assert kernel.get_kernel_source() == kernel.ir("tile")
    assert kernel.ir("lowered").startswith("kernel double(")


def test_other_spellings_are_not_claimed():
    from tile_core.plugins import interpreter

    host = PluginHost()
    host.add("interpret", interpreter)
    backend, target = host.resolve("interpret")
    assert (backend.name, str(target)) == ("interpret", "interpret")
    assert backend.parse_target("interpret:fast") is None


def test_breakpoints_show_the_names_of_the_user(monkeypatch):
    seen = []

    def hook():
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))

    monkeypatch.setattr(sys, "breakpointhook", hook)

    @T.prim_func
    def watched(A: T.Tensor((4,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            v = T.alloc_var("int32")
            twice = bx * 2
            for i in T.serial(2):
                v = twice + i
                breakpoint()
                A[twice + i] = v

    a = np.full(4, -1, np.int32)
    tile.compile(watched, target="interpret")(a)
    assert a.tolist() == [0, 1, 2, 3]
    assert [(s["bx"], s["i"], s["twice"], s["v"]) for _, _, s in seen] == [
        (0, 0, 0, 0),
        (0, 1, 0, 1),
        (1, 0, 2, 2),
        (1, 1, 2, 3),
    ]
    assert seen[1][2]["A"].tolist() == [0, -1, -1, -1]
    assert {file for file, _, _ in seen} == {__file__}


def test_breakpoints_of_other_names_are_calls():
    calls = []

    @T.prim_func
    def f(A: T.Tensor((1,), "int32")):
        breakpoint = calls.append
        breakpoint(1)
        with T.Kernel(1, threads=32):
            A[0] = 1

    assert calls == [1]
    assert "@breakpoint" not in f.script()
