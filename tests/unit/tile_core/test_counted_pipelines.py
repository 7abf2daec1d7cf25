"""Pipelines of machines whose waves count copies: their form, and which loops have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from support.remarked import remarked
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Alloc, If, Kernel
from tile_core.ir.verify import verify
from tile_core.machine import SimtMachine
from tile_core.ops.async_copy import CopyWait
from tile_core.ops.copy import Copy
from tile_core.passes.plan_pipelines import plan_pipelines

MACHINE = SimtMachine(
    name="gfx942",
    family="hip",
    shared_bytes=65536,
    features=frozenset({"counted_load"}),
    warp_size=64,
)
PLAIN = SimtMachine(name="gfx", family="hip", shared_bytes=65536, features=frozenset())


def product(
    stages: int, rounds: int | None = None, dtype: str = "int32", width: int = 16, threads: int = 64
) -> Kernel:
    n = T.dynamic("n") if rounds is None else rounds * 16

    @T.prim_func
    def main(
        A: T.Tensor((16, n), dtype), B: T.Tensor((n, width), dtype), C: T.Tensor((16, width), dtype)
    ):
        with T.Kernel(1, threads=threads):
            A_s = T.alloc_shared((16, 16), dtype)
            B_s = T.alloc_shared((16, width), dtype)
            C_l = T.alloc_fragment((16, width), dtype)
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(n, 16), num_stages=stages):
                T.copy(A[0, k * 16], A_s)
                T.copy(B[k * 16, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return main.kernel


def body_text(kernel: Kernel) -> list[str]:
    lines = print_kernel(kernel).splitlines()
    start = next(k for k, line in enumerate(lines) if "@fill" in line)
    short = [line[4:].split("(src")[0].split("(a=")[0] for line in lines[start + 1 :] if line]
    return short[:-1]


def test_two_stages_copy_before_they_wait() -> None:
    made = plan_pipelines(product(2, 8), MACHINE)
    verify(made)
    assert body_text(made) == [
        "@copy",
        "@copy",
        "@copy_commit()",
        "for k: int32 in range(0, 7, 1) serial:",
        "  @copy",
        "  @copy",
        "  @copy_commit()",
        "  @copy_wait(pending=1)",
        "  @gemm",
        "@copy_wait()",
        "@gemm",
    ]


def test_three_stages_copy_at_the_end_of_a_round() -> None:
    made = plan_pipelines(product(3, 8), MACHINE)
    verify(made)
    assert body_text(made)[6:] == [
        "for k: int32 in range(0, 6, 1) serial:",
        "  @copy_wait(pending=1)",
        "  @gemm",
        "  @copy",
        "  @copy",
        "  @copy_commit()",
        "@copy_wait(pending=1)",
        "@gemm",
        "@copy_wait()",
        "@gemm",
    ]


def test_more_copies_than_waves_count_are_waited_for_before_the_next_begin() -> None:
    def order(width: int) -> list[str]:
        kernel = product(2, 8, width=width)
        text = body_text(plan_pipelines(kernel, MACHINE))
        return [line.strip().split("(")[0] for line in text[4:] if line.startswith("  ")]

    assert order(236)[:4] == ["@copy", "@copy", "@copy_commit", "@copy_wait"]  # 4 + 59
    assert order(240)[:4] == ["@copy_wait", "@copy", "@copy", "@copy_commit"]


def test_as_many_versions_as_stages() -> None:
    for stages in (2, 3, 4):
        made = plan_pipelines(product(stages, 8), MACHINE)
        shapes = {n.buffer.name: n.buffer.shape for n in walk(made) if isinstance(n, Alloc)}
        assert shapes["A_s"] == shapes["B_s"] == (stages, 16, 16)


def test_copies_that_a_mask_leaves_out_stand_in_front() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((8, 16, 16), "int32"), M: T.Tensor((8,), "int32"),
        C: T.Tensor((16, 16), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            A_s = T.alloc_shared((16, 16), "int32")
            C_l = T.alloc_fragment((16, 16), "int32")
            T.clear(C_l)
            for k in T.Pipelined(8, num_stages=3):
                if M[k] > 0:
                    T.copy(A[k, 0, 0], A_s)
                    T.gemm(A_s, A_s, C_l)
            T.copy(C_l, C)

    text = body_text(plan_pipelines(main.kernel, MACHINE))
    steady = text[next(k for k, line in enumerate(text) if line.startswith("for")) :]
    names = [line.strip() for line in steady if "@" in line]
    assert names[:4] == ["@copy_wait(pending=1)", "@copy", "@copy_commit()", "@gemm"]


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("is_static", [True, False])
def test_products_of_all_lengths(stages: int, rounds: int, is_static: bool) -> None:
    if is_static and not rounds:
        return
    made = plan_pipelines(product(stages, rounds if is_static else None), MACHINE)
    verify(made)
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 9, (16, rounds * 16)).astype(np.int32)
    b = rng.integers(-9, 9, (rounds * 16, 16)).astype(np.int32)
    c = np.full((16, 16), -1, np.int32)
    interpret(made, [a, b, c], options=InterpretOptions(late_copies=True))
    np.testing.assert_array_equal(c, a @ b)
    assert any(isinstance(n, CopyWait) for n in walk(made))
    loops = [n for n in walk(made) if hasattr(n, "kind") and hasattr(n, "body")]
    assert not any(isinstance(n, If) for loop in loops for n in walk(loop.body))


CASES: list[tuple[dict[str, Any], str]] = [
    (
        {"dtype": "int8", "width": 30},
        "B_s: neighbours in the tensor are not known to begin at 4 bytes",
    ),
    ({"dtype": "float16", "width": 12}, "B_s: 384 bytes are not 4 for each lane of a wave"),
    ({"threads": 96}, "A_s: 96 threads are not whole waves of 64"),
]


@pytest.mark.parametrize(("how", "why"), CASES)
def test_one_copy_that_goes_through_registers_takes_all_along(
    how: dict[str, Any], why: str
) -> None:
    kernel = product(3, 8, **how)
    (note,) = remarked(plan_pipelines, kernel, MACHINE).notes
    assert note.message == f"copies of a loop go through registers; {why}"
    assert note.span is not None
    made, plain = plan_pipelines(kernel, MACHINE), plan_pipelines(kernel, PLAIN)
    assert print_kernel(made) == print_kernel(plain)
    assert not any(isinstance(n, Copy) and n.is_async for n in walk(made))


def test_a_value_for_what_is_outside_is_no_zero() -> None:
    @T.prim_func
    def main(A: T.Tensor((60, 16), "float32"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=64):
            A_s = T.alloc_shared((16, 16), "float32")
            C_l = T.alloc_fragment((16, 16), "float32")
            T.annotate_safe_value({A: 1.0})
            T.clear(C_l)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16, 0], A_s)
                for i, j in T.Parallel(16, 16):
                    C_l[i, j] = C_l[i, j] + A_s[i, j]
            T.copy(C_l, C)

    (note,) = remarked(plan_pipelines, main.kernel, MACHINE).notes
    assert note.message.endswith("A_s: the program says what is outside of the tensor")


def test_nothing_is_said_where_waves_copy_or_no_machine_counts() -> None:
    assert remarked(plan_pipelines, product(3, 8), MACHINE).notes == ()
    assert remarked(plan_pipelines, product(3, 8, threads=96), PLAIN).notes == ()
    assert remarked(plan_pipelines, product(1, 8, threads=96), MACHINE).notes == ()
