"""Variables that nothing is stored to before they are read are zero; others cost nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ops.operator_table import OPERATORS
from tile_core.passes.define_variables import define_variables

HEAD = """\
kernel main(A: global int32[4], n: int32):
  launch bx: int32 in (1) threads tx: int32, ty: int32, tz: int32 in (2, 1, 1):
    alloc v: local.var int32[1]
"""


def is_put_in(text: str) -> bool:
    body = "".join(f"    {line}\n" for line in text.splitlines())
    kernel = parse_kernel(HEAD + body, OPERATORS, str)
    made = define_variables(kernel)
    if made is not kernel:
        first = print_kernel(made).splitlines()[3]
        assert first == "    v[0] = 0"
    return made is not kernel


@pytest.mark.parametrize(
    "text",
    [
        "A[0] = v[0]",
        "v[0] = v[0] + 1",
        "if n > 0:\n  v[0] = 1\nA[0] = v[0]",
        "if n > 0:\n  v[0] = 1\nelse:\n  A[0] = v[0]",
        "for i: int32 in range(0, n, 1) serial:\n  v[0] = i\nA[0] = v[0]",
        "for i: int32 in range(0, 4, 1) serial:\n  if n > i:\n    break\n  v[0] = i\nA[0] = v[0]",
        "while v[0] < 4:\n  v[0] = 4",
        "eval atomic_add(&rw v[0], 1, 0)",
    ],
)
def test_zero_is_stored_where_it_may_be_read(text: str) -> None:
    assert is_put_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "v[0] = 1\nA[0] = v[0]",
        "A[0] = 1",
        "if n > 0:\n  v[0] = 1\nelse:\n  v[0] = 2\nA[0] = v[0]",
        "for i: int32 in range(0, 4, 1) serial:\n  v[0] = i\n  A[i] = v[0]\nA[0] = v[0]",
        "for i: int32 in range(0, n, 1) serial:\n  v[0] = i\n  A[i] = v[0]",
    ],
)
def test_what_is_surely_stored_to_costs_nothing(text: str) -> None:
    assert not is_put_in(text)


@T.prim_func
def sums(A: T.Tensor((3,), "int32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=8):
        tx = T.get_thread_binding()
        i = T.alloc_var("int32", 0)
        total = T.alloc_var("int32")
        own = T.alloc_var("float32")
        flag = T.alloc_var("bool")
        while i < 10:
            total += i
            i += 1
        for k in T.serial(3):
            fresh = T.alloc_var("int32")
            fresh += k
            if tx == k:
                A[k] = total + fresh
        if tx > 3:
            own = 2.5
        B[tx] = T.if_then_else(flag, 100.0, own)


@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim"])
def test_on_every_target(target: str) -> None:
    a, b = np.full(3, -7, np.int32), np.full(8, np.nan, np.float32)
    tile.compile(sums, target=target)(a, b)
    np.testing.assert_array_equal(a, [45, 46, 47])
    np.testing.assert_array_equal(b, [0, 0, 0, 0, 2.5, 2.5, 2.5, 2.5])
