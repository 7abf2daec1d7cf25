"""Programs of threads that people write: what they mean, and what is refused."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.dtypes import dtype_of
from tile_core.errors import (
    ControlFlowError,
    DtypeMismatch,
    FrontendTypeError,
    FrontendValueError,
    OutOfScratch,
    ScopeError,
    TileError,
    VerifyError,
)
from tile_core.ir.expr import Const
from tile_core.ir.node import substitute, walk
from tile_core.simt.thread_programs import program_of
from tile_cuda.machine import machine
from tile_sim import checking

TARGET = "cuda:sm_80@sim"
HEAD = """
@T.threads(target="cuda:sm_80")
def f(x: T.Tensor((128,), "float32"), n: T.int32):
    with T.launch(
        grid=(1,),
        threads=(128, 1, 1),
        params=dict(x=T.flat(x, (128,), "float32"), n=n),
        shared=dict(tile=T.view(0, (128,), "float32")),
        shared_bytes=512,
    ) as (bx, tx, ty, tz):
"""


@pytest.fixture
def of_lines(kernel_from: Callable[..., Any]) -> Callable[[str], Any]:
    """Return the kernel whose launch has these lines."""

    def build(lines: str) -> Any:
        return kernel_from(HEAD + textwrap.indent(textwrap.dedent(lines), " " * 8))

    return build


def result(program: Any, n: int = 3) -> np.ndarray:
    x = np.arange(128, dtype=np.float32)
    with checking("all"):
        tile.compile(program, target=TARGET)(x, n)
    return x


def test_neighbours_meet_in_shared_memory(of_lines: Callable[[str], Any]) -> None:
    program = of_lines("""
        tile[tx] = x[tx]
        T.device.sync()
        x[tx] = tile[127 - tx]
    """)
    np.testing.assert_array_equal(result(program), np.arange(128)[::-1])


def test_variables_loops_and_branches(of_lines: Callable[[str], Any]) -> None:
    program = of_lines("""
        total = T.alloc_var("int32")
        total = 0
        for i in T.serial(n):
            total += i * 2
        while total < 10:
            total = total + 1
        if tx < 2 and not tx == 1:
            x[tx] = T.cast(total, "float32")
        elif tx == 1:
            x[tx] = -1.0
        else:
            with T.block():
                half = x[tx] * 0.5
                x[tx] = half if tx % 2 == 0 else T.neg(half)
    """)
    expected = np.arange(128) * 0.5 * np.where(np.arange(128) % 2, -1, 1)
    expected[:2] = 10, -1
    np.testing.assert_array_equal(result(program), expected)
    expected[0] = 20
    np.testing.assert_array_equal(result(program, 5), expected)


def test_names_of_python_are_constants(kernel_from: Callable[..., Any]) -> None:
    program = kernel_from(HEAD + " " * 8 + "x[tx] = x[tx] * FACTOR\n", FACTOR=0.25)
    np.testing.assert_array_equal(result(program), np.arange(128) / 4)


def test_lines_name_the_place_where_they_stand(of_lines: Callable[[str], Any]) -> None:
    source = tile.lower(of_lines("x[tx] = 1.0"), target="cuda:sm_80").kernel_source
    assert "x[tx] = 1.0f;  // <kernel" in source
    moved = of_lines("""
        T.line("tiles.py", 7)
        x[tx] = 1.0
    """)
    assert "x[tx] = 1.0f;  // tiles.py:7" in tile.lower(moved, target="cuda:sm_80").kernel_source


def test_nothing_is_folded_or_promoted(of_lines: Callable[[str], Any]) -> None:
    program = of_lines("x[tx * 1 + 0] = x[tx] * 1.0 + 0.0")
    assert "x[tx * 1 + 0] = x[tx] * 1.0f + 0.0f;" in (
        tile.lower(program, target="cuda:sm_80").kernel_source
    )


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ("x[tx] = y[tx]", FrontendTypeError, "'y' is not bound here"),
        ("x[tx] = x[tx] + tx", DtypeMismatch, "'+' of float32 and int32"),
        ("T.device.fly()", FrontendValueError, "no function 'fly'"),
        ("T.copy(x, tile)", FrontendTypeError, "'T.copy' is no function of threads"),
        ("x[tx] = tile", FrontendTypeError, "'tile' is not one value"),
        ("for i in range(3):\n    pass", FrontendTypeError, "has no meaning in a program"),
        ("x[tx] = T.cast(tx)", FrontendTypeError, "T.cast"),
        ("a, b = tx, tx", FrontendTypeError, "has no meaning in a program"),
        ("x[tx] = [1][0]", FrontendTypeError, "is not bound here"),
        ("v = T.view(tile, 4, (3,), 'float32')", FrontendTypeError, "begins where its buffer"),
        ("a = T.alloc_local(4, 'float32')", FrontendTypeError, "a shape is a tuple"),
    ],
)
def test_what_cannot_be_read(
    of_lines: Callable[[str], Any], lines: str, error: type[TileError], message: str
) -> None:
    with pytest.raises(error) as caught:
        of_lines(lines)
    assert message in str(caught.value)
    assert "<kernel" in str(caught.value), "the place"


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ("if tx < 5:\n    T.device.sync()", ControlFlowError, "a barrier of the whole block"),
        ("for i in T.serial(tx):\n    T.device.sync()", ControlFlowError, "a barrier of the whole"),
        ("x[tx] = tile[128]", VerifyError, "index 128 leaves 'tile', which has 128 elements"),
        ("x[tx] = x[tx] < 3.0", VerifyError, "bool is stored to 'x' of float32"),
        ("T.device.async_copy_wait(tx)", VerifyError, "begins with 1 constants"),
        ("v = T.view(x, 0, (64, 2), 'float32')\nv[tx, 0] = 1.0", VerifyError, "is not flat"),
    ],
)
def test_what_threads_cannot_do(
    of_lines: Callable[[str], Any], lines: str, error: type[TileError], message: str
) -> None:
    program = of_lines(lines)
    with pytest.raises(error) as caught:
        tile.lower(program, target="cuda:sm_80")
    assert message in str(caught.value)


@pytest.mark.parametrize("line", ["x[tx] + 2.0", "x[tx] if tx < 5 else 2.0"])
def test_operands_of_different_types_do_not_meet(of_lines: Callable[[str], Any], line: str) -> None:
    """The language converts operands; passes that others insert may not."""
    kernel = of_lines(f"x[tx] = {line}").kernel
    number = next(n for n in walk(kernel) if isinstance(n, Const) and n.value == 2)
    wrong = substitute(kernel, {number: Const(2, dtype_of("int32"))})
    with pytest.raises(VerifyError, match="values of float32 and int32 meet"):
        program_of(wrong, machine("sm_80"))


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("shared_bytes=512", "shared_bytes=256", VerifyError, "takes bytes 0 to 511 of 256"),
        ("T.view(0", "T.view(2", VerifyError, "takes bytes 2 to 513"),
        ("shared_bytes=512", "shared_bytes=1 << 20", OutOfScratch, "of shared memory"),
        ("(128, 1, 1)", "(2048, 1, 1)", TileError, "2048"),
    ],
)
def test_what_a_block_cannot_have(
    kernel_from: Callable[..., Any], old: str, new: str, error: type[TileError], message: str
) -> None:
    assert old in HEAD
    program = kernel_from(HEAD.replace(old, new) + " " * 8 + "x[tx] = 1.0\n")
    with pytest.raises(error) as caught:
        tile.lower(program, target="cuda:sm_80")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" as (bx, tx, ty, tz)", " as (bx, tx)"),
        ("threads=(128, 1, 1),", ""),
        ("n=n", "n=5"),
        ("dict(x=", "list(x="),
    ],
)
def test_launches_that_cannot_be_read(kernel_from: Callable[..., Any], old: str, new: str) -> None:
    assert old in HEAD
    with pytest.raises(FrontendTypeError):
        kernel_from(HEAD.replace(old, new) + " " * 8 + "x[tx] = 1.0\n")


def test_words_of_threads_are_refused_elsewhere() -> None:
    with pytest.raises(ScopeError, match=r"T\.device\.sync can only be used in a program of thr"):
        T.device.sync()
