"""TL8202: a kernel's parameters cannot be those of a torch operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tile_api as tile
from tile_core.errors import TorchOpSignatureError

PROGRAM = """
@T.prim_func
def scale(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32"), n: T.int32):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] = B[i] * n

@T.prim_func
def at(A: T.Tensor((16,), "float32"), place: T.ptr("float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] = A[i] * 2
"""


def message(program: Any, name: str, mutates_args: Any) -> str:
    kernel = tile.compile(program(PROGRAM)[name], target="interpret")
    with pytest.raises(TorchOpSignatureError) as caught:
        kernel.as_torch_op(f"tl8202::{name}", mutates_args=mutates_args)
    return str(caught.value)


def test_a_change_is_left_out(program: Any) -> None:
    assert message(program, "scale", ()) == (
        "[TL8202] scale may change A, which mutates_args leaves out\n"
        "hint: leave out mutates_args: what a kernel writes is known, mutates_args=['A']"
    )


@pytest.mark.parametrize("asked", [("A", "n"), ("C",), "A", 3])
def test_no_tensor_is_called_so(program: Any, asked: Any) -> None:
    assert message(program, "scale", asked) == (
        f"[TL8202] mutates_args of scale are names of tensor arguments, got {asked!r}\n"
        "hint: its tensor arguments are A, B"
    )


def test_address(program: Any) -> None:
    assert message(program, "at", None) == (
        "[TL8202] at.place is an address (handle), of which torch knows neither size nor device\n"
        "note: the parameter is declared here\n"
        " --> program.py:8:39\n"
        "  |\n"
        '8 | def at(A: T.Tensor((16,), "float32"), place: T.ptr("float32")):\n'
        "  |                                       ^^^^^^^^^^^^^^^^^^^^^^^\n"
        'hint: declare it as a tensor: A: T.Tensor((n,), "float32") with n = T.dynamic("n")'
    )


def test_batches_of_changes(program: Any) -> None:
    kernel = tile.compile(program(PROGRAM)["scale"], target="interpret")
    op = kernel.as_torch_op("tl8202::changes")
    with pytest.raises(TorchOpSignatureError) as caught:
        torch.vmap(op, in_dims=(0, 0, None))(torch.ones(3, 16), torch.ones(3, 16), 2)
    assert str(caught.value) == (
        "[TL8202] the torch operator 'tl8202::changes' changes its arguments, which torch.vmap "
        "cannot do\n"
        "hint: write the loop over the batch, or give the kernel a batch dimension"
    )
