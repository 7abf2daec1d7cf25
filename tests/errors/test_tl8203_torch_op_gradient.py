"""TL8203: a gradient does not fit the torch operator it was given for."""

from __future__ import annotations

from typing import Any

import pytest

import tile_api as tile
from tile_core.errors import TorchOpGradientError

PROGRAM = """
@T.prim_func
def double(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            B[i] = A[i] * 2

@T.prim_func
def other(X: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            Y[i] = X[i] * 2

@T.prim_func
def half(dB: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            Y[i] = dB[i] * 2
"""


def kernel(program: Any, name: str, out_idx: Any = (-1,)) -> Any:
    found = None if out_idx is None else list(out_idx)
    return tile.compile(program(PROGRAM)[name], out_idx=found, target="interpret")


def message(forward: Any, backward: Any, setup_context: Any = None) -> str:
    with pytest.raises(TorchOpGradientError) as caught:
        forward.as_torch_op("tl8203::op", backward=backward, setup_context=setup_context)
    return str(caught.value)


def test_no_function(program: Any) -> None:
    assert message(kernel(program, "double"), 2.0) == (
        "[TL8203] the gradient of double is a function or a kernel, got float and setup_context "
        "of NoneType\n"
        "hint: write def backward(ctx, grad) and def setup_context(ctx, inputs, output)"
    )


def test_context_without_gradient(program: Any) -> None:
    assert message(kernel(program, "double"), None, print) == (
        "[TL8203] double was given setup_context and no backward\n"
        "hint: pass backward=, which uses what setup_context keeps"
    )


def test_context_beside_a_kernel(program: Any) -> None:
    assert message(kernel(program, "double"), kernel(program, "half"), print) == (
        "[TL8203] double was given setup_context beside a kernel that gives its gradients\n"
        "hint: leave out setup_context: what the kernel reads is told by its parameters"
    )


def test_changed_arguments(program: Any) -> None:
    assert message(kernel(program, "double", None), print) == (
        "[TL8203] double changes B: torch differentiates operators that change nothing\n"
        "hint: return outputs instead: compile it with out_idx"
    )


def test_parameter_without_meaning(program: Any) -> None:
    found = message(kernel(program, "double"), kernel(program, "other"))
    assert found == (
        "[TL8203] other.X stands for nothing that double has\n"
        "note: the parameter is declared here\n"
        " --> program.py:8:11\n"
        "  |\n"
        '8 | def other(X: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):\n'
        "  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: name it after what it takes: A, B, dB"
    )


def test_output_without_meaning(program: Any) -> None:
    found = message(kernel(program, "double"), kernel(program, "half"))
    assert found.startswith("[TL8203] half.Y is no gradient of an argument of double\n")
    assert found.endswith("\nhint: name it after what it gives: dA")


def test_changes_by_the_gradient(program: Any) -> None:
    found = message(kernel(program, "double"), kernel(program, "half", None))
    assert found.startswith("[TL8203] half.Y is changed by the kernel; gradients are returned\n")
    assert found.endswith("\nhint: compile it with out_idx for the gradients")
