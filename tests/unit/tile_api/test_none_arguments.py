"""None is passed for tensors that a kernel does not use, whatever their shapes and strides say."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
import tile_launch
from tile_core.errors import ArgumentShapeError

TARGETS = ("cpu", "interpret", "cuda:sm_80@sim")
SIZE = 70


def increment(kind, where):
    """Return B = A + 1 with a parameter beside that is not used."""
    n, s, m = T.dynamic("n"), T.dynamic("s"), T.dynamic("m")
    spare = {
        "dense": T.Tensor((n, 4), "float32"),
        "rows": T.StridedTensor((n, 4), (s, 1), "float32"),
        "all strides": T.StridedTensor((n, m), (s, m), "float16"),
        "four bits": T.Tensor((n, 4), "int4"),
        "sums": T.Tensor((n + m, 2 * m), "float32"),
        "fixed": T.StridedTensor((4, 4), (8, 1), "float32"),
        "pointer": T.Tensor((m,), "int8"),
    }[kind]
    vector = T.Tensor((n,), "float32")

    if where == "first":

        @T.prim_func
        def main(S: spare, A: vector, B: vector):
            with T.Kernel(T.ceildiv(n, 32), threads=32) as b:
                for i in T.Parallel(32):
                    B[b * 32 + i] = A[b * 32 + i] + 1

        return main

    @T.prim_func
    def main(A: vector, S: spare, B: vector):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as b:
            for i in T.Parallel(32):
                B[b * 32 + i] = A[b * 32 + i] + 1

    return main


def check(kernel, where):
    for _ in range(3):  # by Python, and then by C
        a, b = np.arange(SIZE, dtype="float32"), np.full(SIZE, np.nan, "float32")
        kernel(*((None, a, b) if where == "first" else (a, None, b)))
        assert (b == a + 1).all()


KINDS = ("dense", "rows", "all strides", "four bits", "sums", "fixed", "pointer")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_tensor_that_is_not_used(kind, target):
    for where in ("first", "between"):
        check(tile.compile(increment(kind, where), target=target), where)


@pytest.mark.parametrize("kind", ["dense", "all strides"])
def test_in_bundles(tmp_path, kind):
    kernel = tile.compile(increment(kind, "first"), target="cpu")
    kernel.save(tmp_path / "x.tile")
    check(tile_launch.load(tmp_path / "x.tile"), "first")


def sizes():
    """Return kernels that write a size: one tensor tells it, or each of two."""
    n, m = T.dynamic("n"), T.dynamic("m")
    result = T.Tensor((SIZE,), "int32")

    @T.prim_func
    def alone(S: T.Tensor((n, m), "float32"), B: result):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(SIZE):
                B[i] = n

    @T.prim_func
    def both(S: T.Tensor((n, m), "float32"), R: T.Tensor((n,), "float32"), B: result):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(SIZE):
                B[i] = n

    return alone, both


def check_alone(kernel):
    b = np.zeros(SIZE, "int32")
    for s, size in 2 * [(np.zeros((5, 2), "float32"), 5), (None, 0), (None, 0)]:
        kernel(s, b)
        assert (b == size).all()


@pytest.mark.parametrize("target", TARGETS)
def test_a_tensor_that_alone_tells_a_size_has_no_elements(target):
    check_alone(tile.compile(sizes()[0], target=target))


def test_a_tensor_that_alone_tells_a_size_in_bundles(tmp_path):
    tile.compile(sizes()[0], target="cpu").save(tmp_path / "x.tile")
    check_alone(tile_launch.load(tmp_path / "x.tile"))


@pytest.mark.parametrize("target", TARGETS)
def test_a_size_of_two_tensors(target):
    kernel, b = tile.compile(sizes()[1], target=target), np.zeros(SIZE, "int32")
    for _ in range(2):
        kernel(None, np.zeros(3, "float32"), b)
        assert (b == 3).all()
        with pytest.raises(ArgumentShapeError, match="no other argument tells the value of n"):
            kernel(None, None, b)
