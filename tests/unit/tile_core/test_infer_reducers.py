"""Reducers in the threads whose iterations add to them: layouts, registers, sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_sim import checking

M, N = 24, 64
ORDERS = ("forward", "random:1", "random:2", "random:3")


def sums(kind: str, op: str = "sum", threads: int = 128, start: int | None = None) -> Any:
    """Return the totals of the columns or rows of an (M, N) tensor of int32, or of all of it.

    "both ways" adds by columns of the tensor and of its transpose in another loop; "shifted"
    adds to the neighbour's column.
    """
    size = {"rows": M, "all": 1}.get(kind, N)

    @T.prim_func
    def main(X: T.Tensor((M, N), "int32"), Y: T.Tensor((size,), "int32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_shared((M, N), "int32")
            total = T.alloc_reducer((size,), "int32", op=op)
            out = T.alloc_fragment((size,), "int32")
            T.copy(X, x)
            if start is None:
                T.reducer_init(total)
            else:
                T.reducer_init(total, start)
            for i, j in T.Parallel(M, N):
                if kind == "rows":
                    T.reducer_update(total[i], x[i, j])
                elif kind == "all":
                    T.reducer_update(total[0], x[i, j])
                elif kind == "shifted":
                    T.reducer_update(total[(j + 1) % N], x[i, j])
                else:
                    T.reducer_update(total[j], x[i, j])
            if kind == "both ways":
                for j, i in T.Parallel(N, M):
                    T.reducer_update(total[j], x[i, j])
            T.finalize_reducer(total, out)
            T.copy(out, Y)

    return main


FOLDS = {"sum": np.sum, "max": np.max, "min": np.min}


def expected(kind: str, op: str, x: np.ndarray) -> np.ndarray:
    fold = FOLDS[op]
    if kind == "all":
        return np.asarray([fold(x)])
    result = np.asarray(fold(x, axis=1 if kind == "rows" else 0))
    if kind == "shifted":
        return np.roll(result, 1)
    return 2 * result if kind == "both ways" and op == "sum" else result


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("threads", [32, 96, 128, 256])
@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("kind", ["columns", "rows", "all", "shifted", "both ways"])
def test_every_iteration_counts_once(kind: str, op: str, threads: int) -> None:
    x = np.random.default_rng(threads).integers(-99, 99, (M, N)).astype(np.int32)
    kernel = tile.compile(sums(kind, op, threads), target="cuda:sm_80@sim")
    for order in ORDERS if threads == 128 else ORDERS[:1]:
        y = np.full(len(expected(kind, op, x)), 1 << 30, np.int32)
        with checking("all", schedule=order):
            kernel(x, y)
        np.testing.assert_array_equal(y, expected(kind, op, x))


@pytest.mark.parametrize("kind", ["columns", "rows", "all", "shifted"])
def test_start_values_count_once(kind: str) -> None:
    x = np.random.default_rng(0).integers(-99, 99, (M, N)).astype(np.int32)
    y = np.full(len(expected(kind, "sum", x)), 1 << 30, np.int32)
    tile.compile(sums(kind, start=7), target="cuda:sm_80@sim")(x, y)
    np.testing.assert_array_equal(y, expected(kind, "sum", x) + 7)


def registers(kind: str, threads: int = 128) -> tuple[int, int]:
    """Return how many registers of a thread the reducer has, and in how many threads a part."""
    layouts = tile.compile(sums(kind, threads=threads), target="cuda:sm_80@sim").layouts()
    fragment: Any = layouts["total"].layout
    return fragment.slots, fragment.replication


def test_a_thread_keeps_what_it_adds_to() -> None:
    # 24 x 64 in accesses of four: sixteen threads a row, eight rows a round.
    assert registers("columns") == (4, 8)
    assert registers("rows") == (3, 16)
    assert registers("all") == (1, 128)
    assert registers("columns", threads=32) == (4, 2)


def test_reducers_of_loops_that_differ_are_in_every_thread() -> None:
    assert registers("both ways") == (N, 128)
    assert registers("shifted") == (N, 128)
