"""The problems that fill a GPU mean what their kernels compute: small ones, in the interpreter."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hardware.cases import Argument, Case
from hardware.executors import torch_dtype
from hardware.large import LARGE
from hardware.problems import prepared
from tile_core.interp import interpret

torch = pytest.importorskip("torch")


def solved(name: str, spoil: float = 0.0) -> list[Any]:
    """Return where the interpreter, which may be made wrong, does not solve a small problem."""
    large = LARGE[name]
    kernel = large.kernel(large.small)
    arguments = tuple(
        Argument(p.name, str(p.dtype), shape=tuple(map(int, map(str, p.shape))))
        for p in kernel.params
    )

    def run(*passed: Any) -> None:
        interpret(kernel, [tensor.numpy() for tensor in passed])
        if spoil:
            passed[-1].flatten()[-1] += spoil

    case = Case(name, "", "", "sm_90a", arguments, (), large.problem)
    return prepared(torch, "cpu", case, run, partial(torch_dtype, torch))(1)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", LARGE)
def test_the_interpreter_solves_it(name: str) -> None:
    assert [str(each) for each in solved(name)] == []


@pytest.mark.parametrize("name", ["gemm", "stream-K", "attention"])
def test_one_wrong_element_is_noticed(name: str) -> None:
    (found,) = solved(name, spoil=1.0)
    assert found.wrong == 1
