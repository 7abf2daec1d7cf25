"""TL8204: a kernel cannot be called by JAX, or not on these arguments."""

from __future__ import annotations

from typing import Any

import pytest

import tile_api as tile
from tile_api.launching import Launcher
from tile_core.errors import JaxCallError

jax = pytest.importorskip("jax")

PROGRAM = """
@T.prim_func
def wide(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "int64")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            B[i] = 1

@T.prim_func
def at(A: T.Tensor((16,), "float32"), place: T.ptr("float32")):
    with T.Kernel(1):
        for i in T.Parallel(16):
            A[i] = A[i] * 2
"""


def kernel(program: Any, name: str, out_idx: Any = None) -> Any:
    return tile.compile(program(PROGRAM)[name], out_idx=out_idx, target="interpret")


def message(action: Any) -> str:
    with pytest.raises(JaxCallError) as caught:
        action()
    return str(caught.value)


def test_address(program: Any) -> None:
    found = message(lambda: kernel(program, "at").as_jax())
    assert found.startswith("[TL8204] at.place is an address (handle), which JAX has none of\n")
    assert found.endswith(
        'hint: declare it as a tensor: A: T.Tensor((n,), "float32") with n = T.dynamic("n")'
    )


def test_wide_elements(program: Any) -> None:
    function = kernel(program, "wide", [1]).as_jax()
    found = message(lambda: function(jax.numpy.zeros(16, "float32")))
    assert found == (
        "[TL8204] wide.B: JAX is set to have no elements of 64 bits, such as int64\n"
        "note: the parameter is declared here\n"
        " --> program.py:2:41\n"
        "  |\n"
        '2 | def wide(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "int64")):\n'
        "  |                                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        'hint: allow them before the first array: jax.config.update("jax_enable_x64", True)'
    )


def test_gradient_of_what_changes(program: Any) -> None:
    found = message(lambda: kernel(program, "wide").as_jax(backward=print))
    assert found == (
        "[TL8204] wide changes B, and has no gradient\n"
        "hint: return outputs instead: compile it with out_idx"
    )


def test_gradient_that_is_none(program: Any) -> None:
    found = message(lambda: kernel(program, "wide", [1]).as_jax(backward=2))
    assert found == (
        "[TL8204] the gradient of wide is a function or a kernel, got int\n"
        "hint: write def backward(arguments, results, gradients)"
    )


def test_another_device(program: Any) -> None:
    from tile_api.integrations.jax_calls import JaxFunction

    compiled = kernel(program, "wide")
    launcher = Launcher(compiled.tile_ir, lambda *args: None, "cuda")
    assert message(lambda: JaxFunction(compiled, launcher, None)) == (
        "[TL8204] wide runs on cuda; JAX calls kernels on the processor\n"
        "hint: compile it for the processor: target='cpu'"
    )
