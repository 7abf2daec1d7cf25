"""`T.Parallel` over extents that are known at run time: every index in its place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim")
SIZES = (0, 1, 3, 5, 16)
a, b, c, d = (T.dynamic(name) for name in "abcd")


@T.prim_func
def three(A: T.Tensor((a, b, c), "int32")):
    with T.Kernel(1, threads=64):
        for i, j, k in T.Parallel(a, b, c):
            A[i, j, k] += i * 10000 + j * 100 + k


@T.prim_func
def turned(A: T.Tensor((a, b, c), "int32"), B: T.Tensor((c, a, b), "int32")):
    with T.Kernel(1, threads=32):
        for k, i, j in T.Parallel(c, a, b):
            B[k, i, j] = A[i, j, k]


@T.prim_func
def four(A: T.Tensor((a, b, 3, c), "int32")):
    with T.Kernel(1, threads=64):
        for i, j, m, k in T.Parallel(a, b, 3, c):
            A[i, j, m, k] += i * 100000 + j * 1000 + m * 100 + k


@T.prim_func
def shifted(A: T.Tensor((a, b, c), "int32")):
    with T.Kernel(2, threads=32) as block:
        for i, j, k in T.Parallel(a, b, T.ceildiv(c, 2)):
            if block * T.ceildiv(c, 2) + k < c:
                A[i, j, block * T.ceildiv(c, 2) + k] += i * 10000 + j * 100 + k


def numbers(shape, weights):
    return sum(w * axis for w, axis in zip(weights, np.indices(shape), strict=True))


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", TARGETS)
def test_indices_are_in_their_places(target):
    kernels = {f.name: tile.compile(f, target=target) for f in (three, turned, four, shifted)}
    shapes = [s for s in itertools.product(SIZES, repeat=3) if sum(s) % 4 == 1 or 16 in s[2:]]
    for shape in shapes if target != "hip:gfx942@sim" else shapes[:12]:
        found = np.zeros(shape, "int32")
        kernels["three"](found)
        weights = numbers(shape, (10000, 100, 1))
        assert (found == weights).all()

        moved = np.full((shape[2], *shape[:2]), -1, "int32")
        kernels["turned"](found, moved)
        assert (moved == np.moveaxis(found, 2, 0)).all()

        more = (*shape[:2], 3, shape[2])
        found = np.zeros(more, "int32")
        kernels["four"](found)
        assert (found == numbers(more, (100000, 1000, 100, 1))).all()

        found = np.zeros(shape, "int32")
        kernels["shifted"](found)
        half = max(1, -(-shape[2] // 2))
        assert (found == weights - np.indices(shape)[2] // half * half).all()
