"""Loops over register tiles that are demanded to be spread differently: copies around them."""

from __future__ import annotations

from typing import Any

import pytest

import tile_api.language as T
from support.thread_machine import MACHINE, RULES
from tile_core.ir.buffer import Scope
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel
from tile_core.ir.verify import verify
from tile_core.layout import Fragment
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferLevel, LayoutMap, Rule
from tile_core.passes.infer_layouts import infer_layouts
from tile_core.passes.separate_loops import separate_loops
from tile_core.target import parse_target_spec

TARGET = parse_target_spec("cuda:sm_80")
BY_ROWS = Fragment((16, 16), lambda i, j: (i, j), threads=16)
BY_COLUMNS = Fragment((16, 16), lambda i, j: (j, i), threads=16)


def rules() -> tuple[Rule[Any], ...]:
    """Return rules by which products hold sums by rows, and first factors by columns."""

    def infer(op: Gemm, ctx: Any, level: InferLevel) -> LayoutMap:
        if level is not InferLevel.STRICT:
            return {}
        demands = {op.c.buffer: BY_ROWS}
        return (
            demands if op.a.buffer.scope is Scope.SHARED else {op.a.buffer: BY_COLUMNS, **demands}
        )

    return (*RULES, Rule(name="g", op=Gemm, lower=lambda op, ctx: None, infer_layout=infer))


@T.macro
def stored(s: Any, p: Any) -> None:
    for i, j in T.Parallel(16, 16):
        p[i, j] = T.cast(s[i, j], p.dtype)


@T.macro
def stored_in_part(s: Any, p: Any) -> None:
    for i, j in T.Parallel(16, 16):
        if i < j:
            p[i, j] = T.cast(s[i, j], p.dtype)


@T.macro
def updated(s: Any, p: Any) -> None:
    for i, j in T.Parallel(16, 16):
        p[i, j] += T.cast(s[i, j], p.dtype)


@T.macro
def in_two_steps(s: Any, p: Any) -> None:
    x = T.alloc_fragment((16, 16), "float32")
    for i, j in T.Parallel(16, 16):
        x[i, j] = s[i, j]
    for i, j in T.Parallel(16, 16):
        p[i, j] = T.cast(x[i, j], p.dtype)


@T.macro
def copied(s: Any, p: Any) -> None:
    T.copy(s, p)


@T.macro
def spread_by_the_user(s: Any, p: Any) -> None:
    x, y = T.alloc_fragment((16, 16), "float32"), T.alloc_fragment((16, 16), "float32")
    T.annotate_layout({x: T.Fragment((16, 16), lambda i, j: (j, i))})
    T.annotate_layout({y: T.Fragment((16, 16), lambda i, j: (i, j))})
    T.copy(s, x)
    T.copy(s, y)
    for i, j in T.Parallel(16, 16):
        x[i, j] += y[i, j]


def products(between: Any, dtype: str = "float16") -> Kernel:
    @T.prim_func
    def main(A: T.Tensor((16, 16), dtype)):
        with T.Kernel(1, threads=16):
            s, d = T.alloc_fragment((16, 16), "float32"), T.alloc_fragment((16, 16), "float32")
            p = T.alloc_fragment((16, 16), dtype)
            a = T.alloc_shared((16, 16), dtype)
            T.copy(A, a)
            T.fill(p, 0)
            T.gemm(a, a, s)
            between(s, p)
            T.gemm(p, a, d)

    return main.kernel


def copies(kernel: Kernel) -> list[str]:
    lines = [line.strip() for line in print_kernel(kernel).splitlines()]
    return [x.replace("[0:16, 0:16]", "") for x in lines if "_own" in x and x.startswith("@copy")]


@pytest.mark.parametrize(
    ("between", "dtype", "expected"),
    [
        (stored, "float16", ["@copy(src=p_own, dst=p)"]),
        (stored, "float64", ["@copy(src=s, dst=s_own)"]),
        (stored_in_part, "float32", ["@copy(src=s, dst=s_own)"]),
        (updated, "float16", ["@copy(src=s, dst=s_own)"]),
        (in_two_steps, "float16", ["@copy(src=p_own, dst=p)"]),
    ],
)
def test_as_few_bits_as_can_be_are_moved(between: Any, dtype: str, expected: list[str]) -> None:
    done = separate_loops(products(between, dtype), TARGET, rules(), MACHINE)
    verify(done)
    assert copies(done) == expected
    infer_layouts(done, TARGET, rules(), simt=MACHINE, exchanges=True)  # without a conflict


@pytest.mark.parametrize("between", [copied, spread_by_the_user])
def test_copies_and_tiles_that_the_user_spread_stay(between: Any) -> None:
    kernel = products(between)
    assert separate_loops(kernel, TARGET, rules(), MACHINE) is kernel
