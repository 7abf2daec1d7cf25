"""Pipelined loops: the text of the result, versions, waits, warnings, schedules by hand."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from tile_core.errors import FrontendValueError, ScheduleError
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.node import walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    For,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    Parallel,
    Pipelined,
)
from tile_core.ir.verify import verify
from tile_core.machine import SimtMachine
from tile_core.ops.async_copy import CopyWait
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.passes.plan_pipelines import PipelineWarning, plan_pipelines

PLAIN = SimtMachine(name="sm_75", family="cuda", shared_bytes=65536, features=frozenset())
MACHINE = SimtMachine(
    name="sm_80", family="cuda", shared_bytes=166912, features=frozenset({"async_copy"})
)


@pytest.fixture(autouse=True)
def no_silent_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PipelineWarning)
        yield


def product(stages: int, rounds: int | None = None) -> Kernel:
    n = T.dynamic("n") if rounds is None else rounds * 16

    @T.prim_func
    def main(
        A: T.Tensor((16, n), "int32"), B: T.Tensor((n, 16), "int32"), C: T.Tensor((16, 16), "int32")
    ):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared((16, 16), "int32")
            B_s = T.alloc_shared((16, 16), "int32")
            C_l = T.alloc_fragment((16, 16), "int32")
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
    return [line[4:] for line in lines[start + 1 :] if line]


def test_the_text_of_three_stages() -> None:
    made = plan_pipelines(product(3, 8), MACHINE)
    verify(made)
    gemm = "c=C_l[0:16, 0:16], transpose_a=false, transpose_b=false, clear=false)"
    assert body_text(made) == [
        "@copy(src=A[0, 0], dst=A_s[0:1, 0:16, 0:16], is_async=true)",
        "@copy(src=B[0, 0], dst=B_s[0:1, 0:16, 0:16], is_async=true)",
        "@copy_commit()",
        "@copy(src=A[0, 16], dst=A_s[1:1, 0:16, 0:16], is_async=true)",
        "@copy(src=B[16, 0], dst=B_s[1:1, 0:16, 0:16], is_async=true)",
        "@copy_commit()",
        "for k: int32 in range(0, 8, 1) serial:",
        "  @copy_wait(pending=1)",
        "  if k + 2 < 8:",
        "    @copy(src=A[0, (k + 2) * 16], dst=A_s[(k + 2) % 3:1, 0:16, 0:16], is_async=true)",
        "    @copy(src=B[(k + 2) * 16, 0], dst=B_s[(k + 2) % 3:1, 0:16, 0:16], is_async=true)",
        "  @copy_commit()",
        f"  @gemm(a=A_s[k % 3:1, 0:16, 0:16], b=B_s[k % 3:1, 0:16, 0:16], {gemm}",
        "@copy_wait()",
        "@copy(src=C_l[0:16, 0:16], dst=C[0:16, 0:16])",
    ]


def test_the_text_of_three_stages_with_the_last_rounds_apart() -> None:
    made = plan_pipelines(product(3, 8), MACHINE, folded=False)
    verify(made)
    gemm = "c=C_l[0:16, 0:16], transpose_a=false, transpose_b=false, clear=false)"
    assert body_text(made)[6:] == [
        "for k: int32 in range(0, 6, 1) serial:",
        "  @copy_wait(pending=1)",
        "  @copy(src=A[0, (k + 2) * 16], dst=A_s[(k + 2) % 3:1, 0:16, 0:16], is_async=true)",
        "  @copy(src=B[(k + 2) * 16, 0], dst=B_s[(k + 2) % 3:1, 0:16, 0:16], is_async=true)",
        "  @copy_commit()",
        f"  @gemm(a=A_s[k % 3:1, 0:16, 0:16], b=B_s[k % 3:1, 0:16, 0:16], {gemm}",
        "@copy_wait(pending=1)",
        f"@gemm(a=A_s[0:1, 0:16, 0:16], b=B_s[0:1, 0:16, 0:16], {gemm}",
        "@copy_wait()",
        f"@gemm(a=A_s[1:1, 0:16, 0:16], b=B_s[1:1, 0:16, 0:16], {gemm}",
        "@copy(src=C_l[0:16, 0:16], dst=C[0:16, 0:16])",
    ]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("stages", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("is_static", [True, False])
def test_products_of_all_lengths(stages: int, rounds: int, is_static: bool, folded: bool) -> None:
    if is_static and not rounds:
        return
    made = plan_pipelines(product(stages, rounds if is_static else None), MACHINE, folded=folded)
    verify(made)
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 9, (16, rounds * 16)).astype(np.int32)
    b = rng.integers(-9, 9, (rounds * 16, 16)).astype(np.int32)
    c = np.full((16, 16), -1, np.int32)
    interpret(made, [a, b, c], options=InterpretOptions(late_copies=True))
    np.testing.assert_array_equal(c, a @ b)
    waits = [n for n in walk(made) if isinstance(n, CopyWait)]
    assert bool(waits) == (stages >= 2)
    (loop,) = [n for n in walk(made) if isinstance(n, For)] or [None]
    branches = [n for n in walk(loop.body) if isinstance(n, If)] if loop else []
    if folded and stages >= 2 and loop is not None:
        assert len([n for n in walk(made) if isinstance(n, Gemm)]) == 1
        assert all(_holds_copies_alone(n) for n in branches)
        assert len(branches) == (not is_static or rounds >= stages)
    else:
        assert not branches


def _holds_copies_alone(branch: If) -> bool:
    return all(isinstance(n, Copy) and n.is_async for n in walk(branch.then) if isinstance(n, Leaf))


def test_plain_loops_stay() -> None:
    for kernel, machine in ((product(1), MACHINE), (product(0), MACHINE), (product(1), PLAIN)):
        assert plan_pipelines(kernel, machine) is kernel


def test_tiles_are_versioned_as_often_as_needed() -> None:
    made = plan_pipelines(product(4, 9), MACHINE)
    shapes = {n.buffer.name: n.buffer.shape for n in walk(made) if isinstance(n, Alloc)}
    assert shapes == {"A_s": (4, 16, 16), "B_s": (4, 16, 16), "C_l": (16, 16)}


def test_layouts_of_tiles_hold_for_each_version() -> None:
    layout = T.Layout((16, 16), lambda i, j: [i, j ^ (i % 8)])

    @T.prim_func
    def main(A: T.Tensor((64, 16), "int32"), C: T.Tensor((16, 16), "int32")):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared((16, 16), "int32")
            C_l = T.alloc_fragment((16, 16), "int32")
            T.annotate_layout({A_s: layout})
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16, 0], A_s)
                T.copy(A_s, C_l)
            T.copy(C_l, C)

    made = plan_pipelines(main.kernel, MACHINE)
    (note,) = [n for n in walk(made) if isinstance(n, AnnotateLayout)]
    assert note.buffer.shape == (2, 16, 16)
    assert isinstance(note.layout, T.Layout)
    assert note.layout.shape == (2, 16, 16)
    assert note.layout.address(1, 3, 5) == 256 + layout.address(3, 5)


def reasons(kernel: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = plan_pipelines(kernel.kernel, MACHINE)
    verify(made)
    assert all(w.filename == __file__ for w in seen)
    return [str(w.message) for w in seen]


def test_why_a_loop_runs_round_after_round() -> None:
    @T.prim_func
    def keeps(A: T.Tensor((64, 16), "int32"), C: T.Tensor((64, 16), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "int32")
            T.clear(S)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(S, C[k * 16, 0])
                T.copy(A[k * 16, 0], S)
                T.copy(S, C[k * 16, 0])

    @T.prim_func
    def carries(A: T.Tensor((64, 16), "int32"), C: T.Tensor((64, 16), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "int32")
            T.clear(S)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16, 0], S[0:8, 0:16])
                T.copy(S, C[k * 16, 0])

    @T.prim_func
    def feeds_back(A: T.Tensor((64, 16), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "int32")
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[k * 16, 0], S)
                T.copy(S, A[k * 16 + 16, 0])

    @T.prim_func
    def outlives(A: T.Tensor((64, 16), "int32"), C: T.Tensor((16, 16), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "int32")
            F = T.alloc_fragment((16, 16), "int32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16, 0], S)
                T.copy(S, F)
            T.copy(S, C)

    @T.prim_func
    def converts(A: T.Tensor((64, 16), "int32"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16, 0], S)
                T.copy(S, C)

    for kernel, why in (
        (keeps, "it depends on an earlier statement of the iteration (line "),
        (carries, "an iteration may read what an earlier one left in 'S' (line "),
        (feeds_back, "both touch 'A'"),
        (outlives, "what the loop leaves in 'S' is used after it"),
        (converts, "it converts elements"),
    ):
        (message,) = reasons(kernel)
        assert message.startswith("a pipelined loop does not overlap its iterations: "), message
        assert why in message


def test_rows_that_do_not_meet_may_run_ahead() -> None:
    """A tensor that the loop writes elsewhere is no obstacle."""

    @T.prim_func
    def main(A: T.Tensor((64, 16), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "int32")
            for k in T.Pipelined(1, 4, num_stages=2):
                T.copy(A[k * 16, 0], S)
                T.copy(S, A[k * 16 - 16, 0])

    made = plan_pipelines(main.kernel, MACHINE)
    assert [n for n in walk(made) if isinstance(n, Copy) and n.is_async]


def test_only_the_inner_of_two_loops() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 16), "int32"), C: T.Tensor((16, 16), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "int32")
            F = T.alloc_fragment((16, 16), "int32")
            T.clear(F)
            for _ in T.Pipelined(3, num_stages=2):
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[k * 16, 0], S)
                    for i, j in T.Parallel(16, 16):
                        F[i, j] += S[i, j]
            T.copy(F, C)

    made = plan_pipelines(main.kernel, MACHINE)
    verify(made)
    assert len([n for n in walk(made) if isinstance(n, Pipelined)]) == 1
    a, c = np.arange(1024, dtype=np.int32).reshape(64, 16), np.zeros((16, 16), np.int32)
    interpret(made, [a, c], options=InterpretOptions(late_copies=True))
    np.testing.assert_array_equal(c, 3 * a.reshape(4, 16, 16).sum(0))


def by_hand(order: tuple[int, ...], stage: tuple[int, ...], rounds: int) -> Kernel:
    @T.prim_func
    def main(
        A: T.Tensor((64, 8), "int32"), B: T.Tensor((64, 8), "int32"), C: T.Tensor((64, 8), "int32")
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((8, 8), "int32")
            D = T.alloc_shared((8, 8), "int32")
            F = T.alloc_fragment((8, 8), "int32")
            T.clear(F)
            for k in T.Pipelined(rounds, order=order, stage=stage):
                base = k * 8
                T.copy(A[base, 0], S)
                T.copy(B[base, 0], D)
                for i, j in T.Parallel(8, 8):
                    F[i, j] = F[i, j] * 2 + S[i, j] - D[i, j]
                T.copy(F, C[base, 0])

    return main.kernel


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[::4])
def test_schedules_by_hand_are_right_or_refused(order: tuple[int, ...], folded: bool) -> None:
    a, b = np.random.default_rng(5).integers(-9, 9, (2, 64, 8)).astype(np.int32)
    outcomes = []
    for stage in itertools.product(range(3), repeat=4):
        try:
            kernels = [by_hand(order, stage, rounds) for rounds in (1, 4)]
            made = [plan_pipelines(kernel, MACHINE, folded=folded) for kernel in kernels]
        except (FrontendValueError, ScheduleError):
            outcomes.append(False)
            continue
        outcomes.append(True)
        for before, after in zip(kernels, made, strict=True):
            verify(after)
            expected, found = np.zeros((2, 64, 8), np.int32)
            interpret(before, [a, b, expected])
            interpret(after, [a, b, found], options=InterpretOptions(late_copies=True))
            np.testing.assert_array_equal(found, expected)
    assert any(outcomes)
    assert not all(outcomes)


@pytest.mark.parametrize(("place", "stage"), [(0, 0), (4, 1)])
def test_entries_for_names_change_nothing(place: int, stage: int) -> None:
    """A name is computed where it is used, whatever its own entry says."""
    without = by_hand((1, 0, 2, 3), (0, 0, 1, 1), 4)
    order = [at + (at >= place) for at in (1, 0, 2, 3)]
    with_name = by_hand((place, *order), (stage, 0, 0, 1, 1), 4)
    wanted, found = (print_kernel(plan_pipelines(k, MACHINE)) for k in (without, with_name))
    assert found == wanted
    assert "commit" in found


def test_a_tile_in_a_branch() -> None:
    """The branch is put around each of its statements, and the copy runs ahead."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 16), "int32"), M: T.Tensor((4,), "int32"), C: T.Tensor((16, 16), "int32")
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((16, 16), "int32")
            F = T.alloc_fragment((16, 16), "int32")
            T.clear(F)
            for k in T.Pipelined(4, num_stages=3):
                if M[k] > 0:
                    T.copy(A[k * 16, 0], S)
                    for i, j in T.Parallel(16, 16):
                        F[i, j] += S[i, j]
            T.copy(F, C)

    made = plan_pipelines(main.kernel, MACHINE)
    verify(made)
    assert [n for n in walk(made) if isinstance(n, Copy) and n.is_async]
    assert [n for n in walk(made) if isinstance(n, Launch)]
    a, c = np.arange(1024, dtype=np.int32).reshape(64, 16), np.zeros((16, 16), np.int32)
    interpret(
        made, [a, np.array([1, 0, 0, 1], np.int32), c], options=InterpretOptions(late_copies=True)
    )
    np.testing.assert_array_equal(c, a[:16] + a[48:])


def last_rounds_are_folded(kernel: Any) -> bool:
    made = plan_pipelines(kernel.kernel, MACHINE)
    verify(made)
    loops = [n for n in walk(made) if isinstance(n, For)]
    return any(isinstance(n, If) for loop in loops for n in walk(loop.body))


def gathering(dtype: str, columns: int, kind: str) -> Any:
    """Return a loop that copies rows of a tensor, and does what `kind` says besides."""
    n = T.dynamic("n")

    @T.prim_func
    def main(
        A: T.Tensor((n, columns), dtype), I: T.Tensor((8,), "int32"), C: T.Tensor((8, 8), dtype)
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((8, 8), dtype)
            F = T.alloc_fragment((8, 8), dtype)
            T.clear(F)
            for k in T.Pipelined(8, num_stages=3):
                if kind == "fill":
                    T.clear(S)
                if kind == "gather":
                    at = I[k]
                    T.copy(A[at * 8, 0], S)
                elif kind == "part":
                    T.copy(A[k * 8, 1], S)
                else:
                    T.copy(A[k * 8, 0], S)
                for i, j in T.Parallel(8, 8):
                    F[i, j] += S[i, j]
            T.copy(F, C)

    return main


@pytest.mark.parametrize(
    ("dtype", "columns", "kind", "folds"),
    [
        ("float16", 64, "rows", True),
        ("float16", 63, "rows", False),  # rows begin between the four bytes of a copy
        ("float16", 64, "part", False),
        ("float32", 63, "part", True),
        ("float16", 64, "gather", True),
        ("float32", 64, "fill", False),  # threads themselves write ahead
    ],
)
def test_only_copies_that_run_beside_the_threads_are_branched_around(
    dtype: str, columns: int, kind: str, folds: bool
) -> None:
    assert last_rounds_are_folded(gathering(dtype, columns, kind)) == folds


def test_what_is_read_for_a_copy_is_read_behind_its_branch() -> None:
    """The table has an entry for each round, and none for those after the last."""
    made = plan_pipelines(gathering("float16", 64, "gather").kernel, MACHINE)
    (loop,) = [n for n in walk(made) if isinstance(n, For)]
    (branch,) = [n for n in walk(loop.body) if isinstance(n, If)]
    assert [isinstance(n, Let) for n in walk(branch.then)].count(True) == 1
    assert not any(isinstance(n, Let) for n in loop.body.body if not isinstance(n, If))
    assert [n for n in loop.body.body if isinstance(n, Parallel)]
