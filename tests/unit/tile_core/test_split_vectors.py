"""Vector values become one scalar per lane."""

from __future__ import annotations

import numpy as np

import tile_api.language as T
from tile_core.interp import interpret
from tile_core.ir.expr import Expr
from tile_core.ir.node import walk
from tile_core.ir.verify import verify
from tile_core.passes.split_vectors import split_vectors


def check(function: object, *arrays: np.ndarray) -> None:
    kernel = function.kernel
    scalar = split_vectors(kernel)
    verify(scalar)
    assert not [n for n in walk(scalar.body) if isinstance(n, Expr) and n.dtype.lanes > 1]
    ours = [a.copy() for a in arrays]
    theirs = [a.copy() for a in arrays]
    interpret(kernel, theirs)
    interpret(scalar, ours)
    for mine, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_overlapping_vectors_are_read_before_written() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=1) as bx:
            A[T.Ramp(1, 1, 8)] = A[T.Ramp(0, 1, 8)] * 2 + T.Broadcast(bx, 8)

    check(main, np.arange(16, dtype="int32"))


def test_dot_products_of_bytes() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int8"), B: T.Tensor((8,), "int8"), C: T.Tensor((2,), "int32")):
        with T.Kernel(2, threads=1) as bx:
            T.dp4a(A[bx * 4], B[bx * 4], C[bx])

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, 8).astype("int8") for _ in range(2))
    check(main, a, b, np.ones(2, "int32"))


def test_kernels_without_vectors_are_left_alone() -> None:
    @T.prim_func
    def main(A: T.Tensor((16,), "int32")):
        with T.Kernel(1) as bx:
            A[bx] = 1

    assert split_vectors(main.kernel) is main.kernel
