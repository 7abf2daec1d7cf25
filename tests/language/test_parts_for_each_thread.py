"""Copies between parts of register tiles and what each thread has for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import counted, drawn, poisoned

SHAPE = (12, 20)
THREADS = 32
PLACES = ("known", "uniform", "of each thread")


def place(where: str, tx: Any, row: Any, column: Any) -> tuple[Any, Any]:
    """Return where a part begins, as the compiler, the block or the thread knows it."""
    if where == "known":
        return 2, 3
    return (row, column) if where == "uniform" else (tx % 8, tx // 8 * 4 + column - 3)


def out_of(where: str, dtype: str, extents: tuple[int, int]) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor(SHAPE, dtype), B: T.Tensor((THREADS, *extents), dtype),
        row: T.int32, column: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            a, mine = T.alloc_fragment(SHAPE, dtype), T.alloc_local(extents, dtype)
            T.copy(A, a)
            i, j = place(where, tx, row, column)
            T.copy(a[i : i + extents[0], j : j + extents[1]], mine)
            for k, m in T.grid(*extents):
                B[tx, k, m] = mine[k, m]

    return main


def into(where: str, dtype: str, extents: tuple[int, int]) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor(SHAPE, dtype), B: T.Tensor((THREADS, *extents), dtype),
        row: T.int32, column: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            a, mine = T.alloc_fragment(SHAPE, dtype), T.alloc_local(extents, dtype)
            T.copy(A, a)
            for k, m in T.grid(*extents):
                mine[k, m] = B[tx if where == "of each thread" else 0, k, m]
            i, j = place(where, tx, row, column)
            T.copy(mine, a[i : i + extents[0], j : j + extents[1]])
            T.copy(a, A)

    return main


def one_element(where: str, dtype: str, extents: tuple[int, int]) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor(SHAPE, dtype), B: T.Tensor((THREADS, *extents), dtype),
        row: T.int32, column: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            a, mine = T.alloc_fragment(SHAPE, dtype), T.alloc_var(dtype)
            T.copy(A, a)
            i, j = place(where, tx, row, column)
            T.copy(a[i, j], mine)
            for k, m in T.grid(*extents):
                B[tx, k, m] = mine

    return main


def results(main: Any, target: str, dtype: str, extents: tuple[int, int]) -> tuple[Any, Any]:
    a = counted(*SHAPE, dtype=dtype, modulo=100)
    b = counted(THREADS, *extents, dtype=dtype, start=50, modulo=90)
    tile.compile(main, target=target)(a, b, 2, 3)
    return a, b


COPIES = [
    (out_of, "float32", (2, 3)), (out_of, "int8", (1, 4)), (out_of, "float16", (3, 1)),
    (into, "float32", (1, 4)), (into, "int8", (1, 3)), (into, "float16", (1, 1)),
    (one_element, "float32", (1, 2)),
]  # fmt: skip
TRIED = [
    (target, *copy, where)
    for at, copy in enumerate(COPIES)
    for turn, where in enumerate(PLACES)
    for target in ("cpu", ("cuda:sm_80@sim", "hip:gfx942@sim")[(at + turn) % 2])
]
"""Each copy meets each target, and each place does."""


@pytest.mark.in_turn(7)
@pytest.mark.parametrize(("target", "make", "dtype", "extents", "where"), TRIED)
def test_all_targets_agree(
    target: str, make: Any, dtype: str, extents: tuple[int, int], where: str
) -> None:
    main = make(where, dtype, extents)
    ours, theirs = (results(main, name, dtype, extents) for name in ("interpret", target))
    np.testing.assert_array_equal(theirs[0], ours[0])
    np.testing.assert_array_equal(theirs[1], ours[1])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
def test_sums_of_products_are_read_by_each_thread(target: str, where: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float16"), B: T.Tensor((64, 4), "float32"), row: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            a, c = T.alloc_shared((32, 32), "float16"), T.alloc_fragment((32, 32), "float32")
            mine = T.alloc_local((4,), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, clear_accum=True)
            i, j = place(where, tx, row, 3)
            T.copy(c[i, j : j + 4], mine)
            for k in T.serial(4):
                B[tx, k] = mine[k]

    a = counted(32, 32, dtype="float16", modulo=7)
    ours, theirs = poisoned(64, 4, dtype="float32"), poisoned(64, 4, dtype="float32")
    tile.compile(main, target="interpret")(a, ours, 2)
    tile.compile(main, target=target)(a, theirs, 2)
    np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
def test_what_each_thread_has_for_itself_in_branches_and_loops_of_some(target):
    @T.prim_func
    def main(
        A: T.Tensor((48, 8), "int32"), N: T.Tensor((48,), "int32"), B: T.Tensor((48, 8), "int32")
    ):
        with T.Kernel(1, threads=48):
            tx = T.get_thread_binding()
            mine, total = T.alloc_local((4,), "int32"), T.alloc_local((1,), "int32")
            if A[tx, 0] > 0:
                T.copy(A[tx, 0:4], mine)
                T.copy(mine, B[tx, 0:4])
            for k in T.serial(N[tx]):
                if k == 3:
                    break
                T.fill(mine, A[tx, 4 + k])
                T.reduce_sum(mine, total)
                B[tx, 4 + k] = total[0]

    a, n, b = (
        drawn(48, 8, dtype="int32"),
        np.arange(48, dtype=np.int32) % 5,
        np.zeros((48, 8), np.int32),
    )
    expected = b.copy()
    expected[:, :4] = np.where(a[:, :1] > 0, a[:, :4], b[:, :4])
    for k in range(3):
        expected[:, 4 + k] = np.where(n > k, 4 * a[:, 4 + k], b[:, 4 + k])
    tile.compile(main, target=target)(a, n, b)
    np.testing.assert_array_equal(b, expected)
