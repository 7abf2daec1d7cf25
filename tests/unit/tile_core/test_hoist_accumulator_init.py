"""Sums that only the first round drops are zeroed before the loop, where that is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from tile_core.interp import interpret
from tile_core.ir.printer import print_kernel
from tile_core.passes.hoist_accumulator_init import hoist_accumulator_init
from tile_core.testing.oracle import poison

SIZE = (16, 16)


def outline(function: Any) -> list[str]:
    lines = [
        line.strip() for line in print_kernel(hoist_accumulator_init(function.kernel)).splitlines()
    ]
    kept = []
    for line in lines:
        word = line.lstrip("@").split("(")[0].split(" ")[0].rstrip(":")
        if word in ("for", "pipelined", "if", "fill", "gemm"):
            kept.append(word if word != "gemm" else "gemm" + " clear" * ("clear=false" not in line))
    return kept


def agrees(function: Any, *inputs: Any) -> None:
    """Refuse a rewriting that computes something else."""
    results = []
    for kernel in (function.kernel, hoist_accumulator_init(function.kernel)):
        out = poison(SIZE, "float32")
        interpret(kernel, [*inputs, out])
        results.append(out)
    np.testing.assert_array_equal(*results)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-3, 4, shape).astype(np.float16)


@pytest.mark.parametrize("first", [0, 2])
def test_before_a_loop_of_known_rounds(first: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((6, *SIZE), "float16"), C: T.Tensor(SIZE, "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared(SIZE, "float16")
            acc = T.alloc_fragment(SIZE, "float32")
            for k in T.serial(first, 6):
                T.copy(A[k, 0, 0], S)
                T.gemm(S, S, acc, clear_accum=k == first)
            T.copy(acc, C)

    assert outline(main) == ["fill", "for", "gemm"]
    agrees(main, numbers(6, *SIZE))


def test_before_a_pipeline_that_may_have_no_round() -> None:
    @T.prim_func
    def main(n: T.int32, A: T.Tensor((6, *SIZE), "float16"), C: T.Tensor(SIZE, "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared(SIZE, "float16")
            acc = T.alloc_fragment(SIZE, "float32")
            T.fill(acc, 3)
            for k in T.Pipelined(n, num_stages=2):
                T.copy(A[k, 0, 0], S)
                T.gemm(S, S, acc, clear_accum=k == 0)
            T.copy(acc, C)

    assert outline(main) == ["fill", "if", "fill", "pipelined", "gemm"]
    for n in (0, 1, 5):
        agrees(main, n, numbers(6, *SIZE))


def kept(body: Any) -> list[str]:
    @T.prim_func
    def main(n: T.int32):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared(SIZE, "float16")
            acc = T.alloc_fragment((2, *SIZE), "float32")
            T.clear(S)
            T.clear(acc)
            for k in T.serial(n):
                body(k, S, acc)

    return outline(main)[2:]


@T.macro
def touched(k: Any, S: Any, acc: Any) -> None:
    acc[0, 0, 0] = acc[0, 0, 0] + 1
    T.gemm(S, S, acc[0, :, :], clear_accum=k == 0)


@T.macro
def in_another_round(k: Any, S: Any, acc: Any) -> None:
    T.gemm(S, S, acc[0, :, :], clear_accum=k == 1)


@T.macro
def under_a_condition(k: Any, S: Any, acc: Any) -> None:
    if k < 3:
        T.gemm(S, S, acc[0, :, :], clear_accum=k == 0)


@T.macro
def of_every_round(k: Any, S: Any, acc: Any) -> None:
    T.gemm(S, S, acc[k % 2, :, :], clear_accum=k == 0)


@T.macro
def left_early(k: Any, S: Any, acc: Any) -> None:
    if k > 3:
        T.loop_break()
    T.gemm(S, S, acc[0, :, :], clear_accum=k == 0)


@pytest.mark.parametrize(
    "body", [touched, in_another_round, under_a_condition, of_every_round, left_early]
)
def test_what_is_not_the_same_stays(body: Any) -> None:
    found = kept(body)
    assert found[0] == "for"
    assert found[-1] == "gemm clear"
