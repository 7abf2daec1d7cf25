"""Serial forms: the same results as the definitions, and nothing but loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tile_api.language as T
from support.trace import trace
from tile_core.errors import UnsupportedOnTarget
from tile_core.interp import interpret
from tile_core.ir.build_expr import const
from tile_core.ir.node import rewrite, walk
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import Launch, Leaf, Parallel, Pipelined
from tile_core.ir.verify import verify
from tile_core.ops.copy import Copy
from tile_core.ops.gpu_only import GpuOperator
from tile_core.ops.serial_forms import expand
from tile_core.passes.lower_serially import lower_serially


def check(function: object, outputs: tuple[str, ...], **operands: str) -> None:
    """Interpret a kernel as written and serially; compare what they write."""
    traced = trace(function, **operands)
    kernel = rewrite(traced, lambda n: replace(n, grid=(const(1),)) if isinstance(n, Launch) else n)
    serial = lower_serially(kernel)
    verify(serial)
    assert not [n for n in walk(serial) if isinstance(n, (Leaf, Parallel, Pipelined))]
    rng = np.random.default_rng(1)
    inputs = {}
    for param in kernel.params:
        inputs[param.name] = rng.integers(-4, 5, param.shape).astype(param.dtype.numpy())
    ours = {name: array.copy() for name, array in inputs.items()}
    interpret(kernel, list(inputs.values()))
    interpret(serial, list(ours.values()))
    for name in outputs:
        np.testing.assert_array_equal(ours[name], inputs[name])


def test_gemm_with_transposes_and_clear() -> None:
    def body(A, B, C, a, b, c):
        T.copy(A, a)
        T.copy(B, b)
        for k in T.serial(3):
            T.gemm(a, b, c, transpose_A=True, transpose_B=True, clear_accum=(k == 0))
        T.copy(c, C)

    check(
        body, ("C",), A="float32[8, 4]", B="float32[6, 8]", C="float32[4, 6]",
        a="shared float32[8, 4]", b="shared float32[6, 8]", c="fragment float32[4, 6]",
    )  # fmt: skip


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax", "bitxor"])
def test_reductions(kind: str, dim: int) -> None:
    def body(A, B, a, b):
        T.copy(A, a)
        T.copy(B, b)
        T.reduce(a, b, kind, dim, False)
        T.copy(b, B)

    kept = 6 if dim == 0 else 5
    check(
        body, ("B",), A="int32[5, 6]", B=f"int32[{kept}]",
        a="fragment int32[5, 6]", b=f"fragment int32[{kept}]",
    )  # fmt: skip


def test_scans_run_both_ways_in_place() -> None:
    def body(A, a):
        T.copy(A, a)
        T.cumsum(a, dim=1)
        T.cumsum(a, dim=0, reverse=True)
        T.copy(a, A)

    check(body, ("A",), A="int32[4, 6]", a="shared int32[4, 6]")


def test_copies_with_guards_and_broadcast() -> None:
    def body(A, B, a):
        T.fill(a, 7)
        T.copy(A[0:6, 2:8], a)
        T.copy(a, B[3:9, 0:6])

    check(body, ("B",), A="float16[5, 7]", B="float16[6, 6]", a="shared float16[6, 6]")


def test_an_expansion_is_loops_over_elements() -> None:
    kernel = trace(lambda A, a: T.copy(A[2:4, :], a), A="int32[4, 8]", a="shared float32[2, 8]")
    (copy,) = [node for node in walk(kernel) if isinstance(node, Copy)]
    lines = print_stmt(expand(copy)).splitlines()
    assert [line.strip() for line in lines if "view" not in line] == [
        "for i: int32 in range(0, 2, 1) serial:",
        "for j: int32 in range(0, 8, 1) serial:",
        "a[i, j] = cast[float32](A[2 + i, j])",
    ]


def test_operators_of_others_have_no_serial_form() -> None:
    with pytest.raises(UnsupportedOnTarget, match="'tma_copy' has no serial form"):
        expand(GpuOperator("tma_copy"))
