"""Reducers: accumulators of parallel loops, their epochs, and what is refused."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import ParallelBodyError, TileError


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("start", [None, 100])
def test_epochs_of_reducers_open_again_in_loops(run, start):
    @T.prim_func
    def main(A: T.Tensor((3, 7, 5), "int32"), B: T.Tensor((3, 7), "int32")):
        with T.Kernel(1, threads=32):
            acc = T.alloc_reducer((7,), "int32", "sum")
            out = T.alloc_shared((7,), "int32")
            for k in T.serial(3):
                if start is None:
                    T.reducer_init(acc)
                else:
                    T.reducer_init(acc, start)
                for r in T.serial(2):
                    for i, j in T.Parallel(7, 5):
                        if j != r:
                            T.reducer_update(acc[i], A[k, i, j])
                T.finalize_reducer(acc, out, batch=1)
                T.copy(out, B[k, :])

    a, b = drawn(3, 7, 5, dtype="int32"), poisoned(3, 7)
    run(main, a, b)
    expected = 2 * a.sum(2) - a[:, :, 0] - a[:, :, 1] + (start or 0)
    assert np.array_equal(b, expected)


@pytest.mark.filterwarnings("ignore:.*replication")
def test_a_store_to_another_element_is_no_update():
    with pytest.raises(ParallelBodyError, match="different indices"):

        @T.prim_func
        def main(A: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                acc = T.alloc_reducer((8,), "int32", "sum", replication="all")
                T.clear(acc)
                for i, j in T.Parallel(8, 8):
                    acc[i] = acc[j] + A[i]
                T.finalize_reducer(acc)


def test_reducers_are_finalised_in_branches(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), S: T.Tensor((3,), "int32"), B: T.Tensor((3, 2), "int32")):
        with T.Kernel(3, threads=32) as bx:
            acc = T.alloc_reducer((1,), "int32", op="sum")
            out = T.alloc_fragment((1,), "int32")
            for r in T.serial(2):
                T.reducer_init(acc, r)
                for i in T.Parallel(8):
                    T.reducer_update(acc[0], A[i])
                if S[bx] < 0:
                    B[bx, r] = -1
                else:
                    for i in T.Parallel(8):
                        T.reducer_update(acc[0], A[i])
                    if S[bx] == 0:
                        T.finalize_reducer(acc, out)
                        B[bx, r] = out[0]
                    else:
                        B[bx, r] = -2

    a, b = counted(8), poisoned(3, 2)
    run(main, a, np.array([-1, 0, 1], "int32"), b)
    total = 2 * a.sum()
    assert np.array_equal(b, [[-1, -1], [total, total + 1], [-2, -2]])


def test_misuse_of_reducers():
    def attempt(kind):
        @T.prim_func
        def main(A: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                acc = T.alloc_reducer((8,), "int32", "sum")
                out = T.alloc_fragment((8,), "int32")
                if kind == "no init":
                    for i in T.Parallel(8):
                        T.reducer_update(acc[i], A[i])
                elif kind == "not finalised":
                    T.reducer_init(acc)
                    for i in T.Parallel(8):
                        T.reducer_update(acc[i], A[i])
                else:
                    T.reducer_init(acc)
                    T.copy(acc, out)

        tile.compile(main, target="cpu")

    for kind in ("no init", "not finalised", "read inside"):
        with pytest.raises(TileError):
            attempt(kind)
