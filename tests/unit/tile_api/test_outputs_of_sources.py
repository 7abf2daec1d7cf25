"""What kernels without tensor arguments return: torch's tensors where a torch program calls."""

from __future__ import annotations

import types

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
import tile_launch
from tile_core.errors import OutputError

torch = None  # of this module: it uses none


@tile.jit(target="cpu", out_idx=[-1])
def filled(n):
    @T.prim_func
    def main(x: T.float32, B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = x

    return main


@tile.jit(target="cpu")
def eager(n: int):
    B = T.empty((n,), "int32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(n):
            B[i] = i
    return B


def module(text):
    """Return a module of a program."""
    made = types.ModuleType("program")
    exec(f"{text}\ndef call(kernel, *args):\n    return kernel(*args)\n", vars(made))
    return made


TEXTS = ("import torch", "import torch.nn.functional as F", "from torch import Tensor",
         "from torch import empty")  # fmt: skip


@pytest.fixture
def kernels(tmp_path):
    filled(5).save(tmp_path / "x.tile")
    return [(filled(5), (2.5,)), (tile_launch.load(tmp_path / "x.tile"), (2.5,)), (eager, (5,))]


def test_who_calls_decides(kernels):
    found = pytest.importorskip("torch")
    for kernel, args in kernels:
        for _ in range(4):  # by Python, and then by C
            array = kernel(*args)
            assert type(array) is np.ndarray
            assert type(module("import numpy").call(kernel, *args)) is np.ndarray
            for text in TEXTS:
                tensor = module(text).call(kernel, *args)
                assert type(tensor) is found.Tensor
                assert tensor.tolist() == array.tolist()


def test_tensors_decide_where_there_are_some():
    pytest.importorskip("torch")

    @T.prim_func
    def copy(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            T.copy(A, B)

    kernel = tile.compile(copy, target="cpu", out_idx=[1])
    made = module("import torch").call(kernel, np.ones(4, "float32"))
    assert type(made) is np.ndarray


def test_programs_of_tilelang_get_tensors_of_torch():
    found = pytest.importorskip("torch")
    from tile_api.tilelang import install

    with install("cpu"):
        assert type(filled(6)(2.0)) is found.Tensor
    assert type(filled(6)(2.0)) is np.ndarray


@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80"])
def test_outputs_are_written(target):
    @T.prim_func
    def copy(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32):
            T.copy(A, B)

    with pytest.raises(OutputError, match="never writes A"):
        tile.lower(copy, target=target, out_idx=[0])
    assert tile.lower(copy, target=target, out_idx=[1]).lowered.kernel.outputs == (1,)
