"""Device programs as functions of host tensors: symbols, steps, strides, workspaces, reports."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from tile_core.dtypes import dtype_of
from tile_core.errors import AssumptionError, DataRace, EmptyGridError, OutOfBounds, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Check, CheckKind, Kernel, Launch, Let, Seq
from tile_core.machine import SimtMachine
from tile_core.simt.program import DeviceFunction, DeviceProgram
from tile_core.testing.build_ir import load, seq, store, symbol, tensor, value
from tile_sim import checking, last_report
from tile_sim.artifact import compile_program
from tile_sim.executable import Executable

MACHINE = SimtMachine(name="sm_80", family="cuda", shared_bytes=1 << 16, features=frozenset())
INT32 = dtype_of("int32")


def flat(buffer):
    return Buffer(buffer.name, (0,), buffer.dtype, Scope.GLOBAL)


def function(name, params, arguments, grid, body, threads=32):
    """Return a launch whose body is a function of block and thread."""
    bx, tx, ty, tz = (Var(n, INT32) for n in ("bx", "tx", "ty", "tz"))
    grid = tuple(as_expr(e) for e in grid)
    blocks = (bx, Var("by", INT32))[: len(grid)]
    launch = Launch(blocks, grid, (tx, ty, tz), (threads, 1, 1), body(bx, tx))
    return DeviceFunction(name, params, arguments, launch, {}, 0)


def built(params, steps, *, outputs=(), workspaces=()):
    kernel = Kernel("kernel", tuple(params), Seq(()), outputs)
    program = DeviceProgram(kernel, MACHINE, tuple(steps), None, tuple(workspaces))
    return Executable(compile_program(program), kernel)


def doubling(n, strides=None):
    """Return B[i] = 2 * A[i] for n elements, in blocks of 32."""
    a, b = tensor("A", (n,), strides=strides), tensor("B", (n,))
    fa, fb = flat(a), flat(b)
    step = 1 if strides is None else strides[0]

    def body(bx, tx):
        i = bx * 32 + tx
        return store(fb, i, load(fa, i * step) * 2.0)

    scalars = tuple(s for s in (step,) if isinstance(s, Var))
    params, arguments = (fa, fb, *scalars), (a, b, *scalars)
    return [a, b], [function("kernel", params, arguments, ((n + 31) // 32,), body)]


def test_symbols_come_from_shapes():
    run = built(*doubling(symbol("n")))
    for n in (64, 96):
        a, b = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
        run(a, b)
        np.testing.assert_array_equal(b, 2 * a)
    assert run.report is last_report()
    assert run.report.launches[0].blocks_run == 3


def test_strided_arguments():
    n, s = symbol("n"), symbol("s")
    run = built(*doubling(n, strides=(s,)))
    base = np.arange(192, dtype=np.float32)
    b = np.full(64, np.nan, np.float32)
    run(base[::3], b)
    np.testing.assert_array_equal(b, 2 * base[::3])


def test_torch_and_dlpack_tensors():
    run = built(*doubling(symbol("n")))
    a, b = torch.arange(32.0), torch.full((32,), float("nan"))
    run(a, b)
    assert torch.equal(b, 2 * a)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint8", "int64", "float64"])
def test_element_types_and_scalars(dtype):
    a, x = tensor("A", (32,), dtype), symbol("x", dtype)
    fa = flat(a)
    run = built(
        [a, x], [function("kernel", (fa, x), (a, x), (1,), lambda bx, tx: store(fa, tx, x))]
    )
    array = np.zeros(32, getattr(ml_dtypes, dtype, dtype))
    run(array, 3)
    assert (array == 3).all()


def test_steps_of_the_host_and_workspaces():
    """Two launches with a workspace, a name and a condition between them."""
    n, m = symbol("n"), symbol("m")
    a = tensor("A", (n,))
    w = Buffer("W", (n * 2,), dtype_of("float32"), Scope.GLOBAL, workspace=True)
    fa, fw = flat(a), flat(w)
    fill = function(
        "first", (fw,), (w,), (n // 16,),
        lambda bx, tx: store(fw, bx * 32 + tx, bx * 32 + tx),
    )  # fmt: skip
    take = function(
        "second", (fa, fw, m), (a, w, m), (n // 32,),
        lambda bx, tx: store(fa, bx * 32 + tx, load(fw, bx * 32 + tx + m)),
    )  # fmt: skip
    check = Check(m < value(1000), "few elements", CheckKind.ASSUME)
    run = built([a], [fill, Let(m, n // 2), check, take], workspaces=[w])
    out = np.full(64, np.nan, np.float32)
    run(out)
    np.testing.assert_array_equal(out, np.arange(32, 96))
    assert len(run.report.launches) == 2
    with pytest.raises(AssumptionError, match="few elements"):
        run(np.zeros(2048, np.float32))


def test_no_blocks():
    run = built(*doubling(symbol("n")))
    with pytest.raises(EmptyGridError) as caught:
        run(np.zeros(0, np.float32), np.zeros(0, np.float32))
    assert str(caught.value) == (
        "[TL6007] kernel: the grid (0,) has no blocks\n"
        "hint: do not call the kernel when there is nothing to do"
    )


def test_arguments_stay_as_they_were_if_a_check_fails():
    run = built(*doubling(symbol("n")))
    a, b = np.zeros(40, np.float32), np.ones(40, np.float32)
    with pytest.raises(OutOfBounds):  # the last block has no guard
        run(a, b)
    assert (b == 1).all()
    assert run.report.findings


def test_the_users_line(monkeypatch):
    """A race of two blocks is told in the user's words, with the place in Python."""
    a = tensor("A", (4, 8), "int32")
    fa = flat(a)

    def body(bx, tx):
        racy = store(fa, tx, bx)
        object.__setattr__(racy, "span", Span("user.py", 7, 4, 15))
        return seq(racy)

    run = built([a], [function("kernel", (fa,), (a,), (2,), body)])
    with checking("race", threads=1), pytest.raises(DataRace) as caught:
        run(np.zeros((4, 8), np.int32))
    assert caught.value.span == Span("user.py", 7, 4, 15)
    assert caught.value.message == (
        "thread 0 of block (1) writes A[0, 0], which thread 0 of block (0) wrote without "
        "synchronisation"
    )


def test_four_bit_elements_travel_packed():
    a = tensor("A", (64,), "int4")
    fa = Buffer("A", (0,), dtype_of("uint8"), Scope.GLOBAL)
    body = lambda bx, tx: store(fa, tx, load(fa, tx) ^ value(0x11, "uint8"))  # noqa: E731
    run = built([a], [function("kernel", (fa,), (a,), (1,), body)])
    packed = np.arange(32, dtype=np.uint8)
    loose = np.stack([packed & 15, packed >> 4], -1).ravel().astype(np.int8)
    loose = ((loose ^ 8) - 8).astype(ml_dtypes.int4)
    run(packed.view(np.int8))
    run(loose)
    np.testing.assert_array_equal(packed, np.arange(32) ^ 0x11)
    nibbles = loose.astype(np.int8).astype(np.uint8) & 15
    np.testing.assert_array_equal(nibbles[::2] | nibbles[1::2] << 4, packed)
