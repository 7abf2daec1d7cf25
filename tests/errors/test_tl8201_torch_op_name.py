"""TL8201: the name of a torch operator is malformed or taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tile_api as tile
from tile_core.errors import TorchOpNameError

PROGRAM = """
@T.prim_func
def double(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            B[i] = A[i] + A[i]

@T.prim_func
def triple(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            B[i] = A[i] * 3
"""


@pytest.fixture
def compiled(program: Any) -> Any:
    scope = program(PROGRAM)
    return lambda name: tile.compile(scope[name], out_idx=[-1], target="interpret")


def message(kernel: Any, name: Any) -> str:
    with pytest.raises(TorchOpNameError) as caught:
        kernel.as_torch_op(name)
    return str(caught.value)


@pytest.mark.parametrize("name", ["double", "a::b::c", "a::", "::b", "my-lib::double", "a.b::c"])
def test_malformed(compiled: Any, name: str) -> None:
    assert message(compiled("double"), name) == (
        f"[TL8201] {name!r} is no name of a torch operator\n"
        'hint: names have a namespace and two colons: "mylib::add"'
    )


def test_no_text(compiled: Any) -> None:
    assert message(compiled("double"), 7) == (
        "[TL8201] the name of a torch operator is a str, got int\n"
        'hint: write kernel.as_torch_op("mylib::add")'
    )


def test_torch_s_own(compiled: Any) -> None:
    assert message(compiled("double"), "aten::double") == (
        "[TL8201] 'aten::double' is in a namespace of torch itself\n"
        'hint: use one of your own: "mylib::double"'
    )


def test_of_another_kernel(compiled: Any) -> None:
    compiled("double").as_torch_op("tl8201::taken")
    assert message(compiled("triple"), "tl8201::taken") == (
        "[TL8201] the torch operator 'tl8201::taken' was made of another kernel: it runs "
        "another one on cpu already\n"
        "hint: give each kernel a name of its own, and call as_torch_op once"
    )


def test_of_another_library(compiled: Any) -> None:
    theirs = torch.library.custom_op(
        "tl8201::theirs", lambda x: x.clone(), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    assert message(compiled("double"), "tl8201::theirs") == (
        "[TL8201] the torch operator 'tl8201::theirs' exists already, and is no tile kernel\n"
        "hint: choose another name"
    )
    assert theirs(torch.ones(1)) == 1


def test_the_same_kernel_is_the_same_operator(compiled: Any) -> None:
    op = compiled("double").as_torch_op("tl8201::same")
    assert compiled("double").as_torch_op("tl8201::same") is op
