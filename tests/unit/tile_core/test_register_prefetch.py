"""Copies through registers: the text of the result, tiles with two versions, what stays whole."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from tile_core.interp import interpret
from tile_core.ir.buffer import Scope
from tile_core.ir.node import rewrite, walk
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Alloc, For, If, Kernel
from tile_core.ir.verify import verify
from tile_core.machine import SimtMachine
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.copy import Copy
from tile_core.passes.plan_pipelines import PipelineWarning, plan_pipelines

TURING = SimtMachine(
    name="sm_75", family="cuda", shared_bytes=65536, features=frozenset({"mma_m16n8k8_f16"})
)
VOLTA = SimtMachine(name="sm_70", family="cuda", shared_bytes=65536, features=frozenset())


def product(
    stages: int = 2, rounds: int | None = None, *, dtype: str = "int32", size: int = 16
) -> Kernel:
    n = T.dynamic("n") if rounds is None else rounds * 16

    @T.prim_func
    def main(
        A: T.Tensor((size, n), dtype),
        B: T.Tensor((n, size), "int32"),
        C: T.Tensor((size, size), "int32"),
    ):
        with T.Kernel(1, threads=2 * size):
            A_s = T.alloc_shared((size, 16), "int32")
            B_s = T.alloc_shared((16, size), "int32")
            C_l = T.alloc_fragment((size, size), "int32")
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


def tiles(kernel: Kernel, scope: Scope) -> dict[str, tuple[Any, ...]]:
    found = (n.buffer for n in walk(kernel) if isinstance(n, Alloc))
    return {buffer.name: buffer.shape for buffer in found if buffer.scope is scope}


def test_the_text_of_a_product() -> None:
    made = plan_pipelines(product(3, 8), TURING)
    verify(made)
    gemm = "c=C_l[0:16, 0:16], transpose_a=false, transpose_b=false, clear=false)"
    assert body_text(made) == [
        "alloc A_s_ahead: local.fragment int32[16, 16]",
        "alloc B_s_ahead: local.fragment int32[16, 16]",
        "@copy(src=A[0, 0], dst=A_s_ahead[0:16, 0:16])",
        "@copy(src=B[0, 0], dst=B_s_ahead[0:16, 0:16])",
        "for k: int32 in range(0, 7, 1) serial:",
        "  @copy(src=A_s_ahead[0:16, 0:16], dst=A_s[k % 2:1, 0:16, 0:16])",
        "  @copy(src=B_s_ahead[0:16, 0:16], dst=B_s[k % 2:1, 0:16, 0:16])",
        "  @copy(src=A[0, (k + 1) * 16], dst=A_s_ahead[0:16, 0:16])",
        "  @copy(src=B[(k + 1) * 16, 0], dst=B_s_ahead[0:16, 0:16])",
        f"  @gemm(a=A_s[k % 2:1, 0:16, 0:16], b=B_s[k % 2:1, 0:16, 0:16], {gemm}",
        "@copy(src=A_s_ahead[0:16, 0:16], dst=A_s[1:1, 0:16, 0:16])",
        "@copy(src=B_s_ahead[0:16, 0:16], dst=B_s[1:1, 0:16, 0:16])",
        f"@gemm(a=A_s[1:1, 0:16, 0:16], b=B_s[1:1, 0:16, 0:16], {gemm}",
        "@copy(src=C_l[0:16, 0:16], dst=C[0:16, 0:16])",
    ]


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
@pytest.mark.parametrize("is_static", [True, False])
def test_products_of_all_lengths(stages: int, rounds: int, is_static: bool) -> None:
    if is_static and not rounds:
        return
    made = plan_pipelines(product(stages, rounds if is_static else None), TURING)
    verify(made)
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 9, (16, rounds * 16)).astype(np.int32)
    b = rng.integers(-9, 9, (rounds * 16, 16)).astype(np.int32)
    c = np.full((16, 16), -1, np.int32)
    interpret(made, [a, b, c])
    np.testing.assert_array_equal(c, a @ b)
    assert not any(isinstance(n, (CopyWait, CopyCommit)) for n in walk(made))
    loops = [n for n in walk(made) if isinstance(n, For)]
    assert all(not isinstance(n, If) for loop in loops for n in walk(loop.body))


@pytest.mark.parametrize("stands_upright", [True, False])
@pytest.mark.parametrize("is_sliced", [True, False])
def test_tiles_with_dimensions_of_one(stands_upright: bool, is_sliced: bool) -> None:
    """The registers have the tile's shape: what is named by its first element lies as it does."""
    shape = (16, 1) if stands_upright else (1, 16)

    @T.prim_func
    def main(A: T.Tensor((16, 16), "int32"), C: T.Tensor((1, 16), "int32")):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared(shape, "int32")
            C_l = T.alloc_fragment((1, 16), "int32")
            T.clear(C_l)
            for k in T.Pipelined(4, num_stages=2):
                if is_sliced and stands_upright:
                    T.copy(A[0:16, k : k + 1], A_s)
                elif is_sliced:
                    T.copy(A[k : k + 1, 0:16], A_s)
                elif stands_upright:
                    T.copy(A[0, k], A_s)
                else:
                    T.copy(A[k, 0], A_s)
                for _, j in T.Parallel(1, 16):
                    C_l[0, j] += A_s[j, 0] if stands_upright else A_s[0, j]
            T.copy(C_l, C)

    made = plan_pipelines(main.kernel, VOLTA)
    verify(made)
    assert tiles(made, Scope.FRAGMENT)["A_s_ahead"] == shape
    a = np.random.default_rng(1).integers(-9, 9, (16, 16)).astype(np.int32)
    c = np.full((1, 16), -1, np.int32)
    interpret(made, [a, c])
    np.testing.assert_array_equal(c[0], (a[:, :4].sum(1) if stands_upright else a[:4].sum(0)))


def test_conversions_wait_for_the_store() -> None:
    """A load that converts would wait for memory before the products it runs beside."""
    made = plan_pipelines(product(2, 4, dtype="int8"), TURING)
    dtypes = {n.buffer.name: str(n.buffer.dtype) for n in walk(made) if isinstance(n, Alloc)}
    assert (dtypes["A_s_ahead"], dtypes["A_s"]) == ("int8", "int32")


def test_tiles_without_room_for_a_second_version_have_one() -> None:
    """Half of 64 KiB is 32 KiB: a tile of 128 x 16 words takes 8 KiB, two of them 16."""
    assert tiles(plan_pipelines(product(2, 4, size=128), TURING), Scope.SHARED) == {
        "A_s": (2, 128, 16), "B_s": (2, 16, 128),
    }  # fmt: skip
    small = SimtMachine(name="m", family="cuda", shared_bytes=48 << 10, features=frozenset())
    assert tiles(plan_pipelines(product(2, 4, size=128), small), Scope.SHARED) == {
        "A_s": (2, 128, 16), "B_s": (16, 128),
    }  # fmt: skip


def test_tiles_too_large_for_registers_are_copied_in_their_place() -> None:
    """256 threads hold 128 x 128 sums, 64 each, and would hold 8 more of each factor."""
    with pytest.warns(PipelineWarning, match="does not overlap its iterations"):
        made = plan_pipelines(product(2, 4, size=128), _with_registers(80))
    assert "A_s_ahead" not in tiles(made, Scope.FRAGMENT)
    made = plan_pipelines(product(2, 4, size=128), _with_registers(108))
    assert tiles(made, Scope.FRAGMENT).keys() == {"C_l", "A_s_ahead", "B_s_ahead"}


def _with_registers(number: int) -> SimtMachine:
    return SimtMachine(
        name="m", family="cuda", shared_bytes=1 << 16, features=frozenset(), registers=number
    )


def test_a_copy_behind_a_branch_runs_ahead_behind_it() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 16), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared((16,), "int32")
            C_l = T.alloc_fragment((16,), "int32")
            T.clear(C_l)
            for k in T.Pipelined(n, num_stages=2):
                if k % 3 != 1:
                    T.copy(A[k, 0], A_s)
                    for i in T.Parallel(16):
                        C_l[i] += A_s[i] * (k + 1)
            T.copy(C_l, C)

    made = plan_pipelines(main.kernel, TURING)
    assert tiles(made, Scope.FRAGMENT)["A_s_ahead"] == (16,)
    for rounds in (1, 2, 3, 7):
        a = np.random.default_rng(rounds).integers(-9, 9, (rounds, 16)).astype(np.int32)
        c = np.full(16, -1, np.int32)
        interpret(made, [a, c])
        rows = [k for k in range(rounds) if k % 3 != 1]
        np.testing.assert_array_equal(c, sum(a[k] * (k + 1) for k in rows))


def test_where_sums_are_exchanged_room_for_it_is_left() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            W_l = T.alloc_fragment((64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            T.clear(W_l)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0, 0], A_s)
                T.gemm(W_l, A_s, C_l)
                T.copy(A[k, 0, 0], B_s)
                T.gemm(W_l, B_s, C_l)
            T.copy(C_l, C)

    shapes = {m: tiles(plan_pipelines(main.kernel, m), Scope.SHARED) for m in (TURING, VOLTA)}
    assert shapes[TURING] == {"A_s": (2, 64, 64), "B_s": (2, 64, 64)}
    assert shapes[VOLTA] == {"A_s": (64, 64), "B_s": (64, 64)}


@pytest.mark.parametrize("wish", ["loop_layout", "prefer_instruction"])
def test_copies_with_a_way_of_their_own_stay_whole(wish: str) -> None:
    kernel = product(2, 4)
    copies = [n for n in walk(kernel) if isinstance(n, Copy)]
    assert len(copies) == 3
    options: dict[str, Any] = {wish: "sync" if wish == "prefer_instruction" else object()}
    marked = rewrite(
        kernel, lambda n: replace(n, **options) if n is copies[0] or n is copies[1] else n
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PipelineWarning)
        made = plan_pipelines(marked, TURING)
    assert tiles(made, Scope.FRAGMENT).keys() == {"C_l"}


def test_loops_in_a_row_have_registers_of_their_own() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 16), "int32"), C: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=32):
            A_s = T.alloc_shared((16,), "int32")
            C_l = T.alloc_fragment((16,), "int32")
            T.clear(C_l)
            for _ in range(2):
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[k, 0], A_s)
                    for i in T.Parallel(16):
                        C_l[i] += A_s[i]
            T.copy(C_l, C)

    made = plan_pipelines(main.kernel, TURING)
    a, c = np.arange(64, dtype=np.int32).reshape(4, 16), np.full(16, -1, np.int32)
    interpret(made, [a, c])
    np.testing.assert_array_equal(c, 2 * a.sum(0))


def test_every_number_of_stages_is_one_round_ahead() -> None:
    texts = [body_text(plan_pipelines(product(stages, 6), TURING)) for stages in (2, 3, 5)]
    assert all(a == b for a, b in itertools.pairwise(texts))


def narrow(multiple: int) -> Kernel:
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((16, n), "float16"), C: T.Tensor((16, 16))):
        with T.Kernel(1, threads=32):
            T.assume(n % multiple == 0)
            A_s = T.alloc_shared((16, 16), "float16")
            C_l = T.alloc_fragment((16, 16), "float32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(n, 16), num_stages=2):
                T.copy(A[0, k * 16], A_s)
                T.gemm(A_s, A_s, C_l)
            T.copy(C_l, C)

    return main.kernel


def test_elements_that_come_one_by_one_stay_in_their_place() -> None:
    """Rows of any number of halves start anywhere: no two of them are surely one word."""
    made = plan_pipelines(narrow(1), TURING)
    assert tiles(made, Scope.FRAGMENT).keys() == {"C_l"}
    assert tiles(made, Scope.SHARED) == {"A_s": (16, 16)}
    made = plan_pipelines(narrow(2), TURING)
    assert tiles(made, Scope.FRAGMENT).keys() == {"C_l", "A_s_ahead"}
