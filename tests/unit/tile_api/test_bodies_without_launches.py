"""Statements outside of `T.Kernel` run once, in order, on every target alike."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim")
SIZE = 37


@T.prim_func
def elementwise(A: T.Tensor((SIZE,), "int32"), B: T.Tensor((SIZE,), "int32")):
    for i in T.Parallel(SIZE):
        B[i] = A[i] + 1


@T.prim_func
def serial(A: T.Tensor((SIZE,), "int32"), B: T.Tensor((SIZE,), "int32")):
    B[0] = A[0] + 1
    for i in T.serial(1, SIZE):
        B[i] = A[i] + B[i - 1]


@T.prim_func
def branches(A: T.Tensor((SIZE,), "int32"), B: T.Tensor((SIZE,), "int32")):
    for i, j in T.grid(3, SIZE):
        if A[j] % 3 == i:
            B[j] = i


@T.prim_func
def around(A: T.Tensor((SIZE,), "int32"), B: T.Tensor((SIZE,), "int32")):
    T.assume(A.shape[0] == SIZE)
    for i in T.Parallel(SIZE):
        B[i] = A[i]
    with T.Kernel(T.ceildiv(SIZE, 8), threads=32) as b:
        for i in T.Parallel(8):
            B[b * 8 + i] += 1
    if B[0] == 1:
        B[1] = 100
    with T.Kernel(1, threads=32):
        B[2] = B[1] + 1
    T.atomic_add(B[3], 5)


@T.prim_func
def tiles(A: T.Tensor((SIZE,), "int32"), B: T.Tensor((SIZE,), "int32")):
    shared = T.alloc_shared((SIZE,), "int32")
    fragment = T.alloc_fragment((SIZE,), "int32")
    own = T.alloc_local((1,), "int32")
    largest = T.alloc_var("int32")
    T.copy(A, shared)
    T.copy(shared, fragment)
    T.reduce_max(fragment, own, dim=0)
    largest = own[0]
    for i in T.Parallel(SIZE):
        fragment[i] = largest - fragment[i]
    T.copy(fragment, B)


@T.prim_func
def nothing(A: T.Tensor((SIZE,), "int32"), B: T.Tensor((SIZE,), "int32")):
    pass


def expected(name, a):
    b = np.full_like(a, -7)
    match name:
        case "elementwise":
            b = a + 1
        case "serial":
            b = np.cumsum(a, dtype="int32") + 1
        case "branches":
            b = a % 3
        case "tiles":
            b = a.max() - a
        case "around":
            b = a + 1
            b[1] = 100 if b[0] == 1 else b[1]
            b[2], b[3] = b[1] + 1, b[3] + 5
    return b


PROGRAMS = (elementwise, serial, branches, around, tiles, nothing)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_target_runs_them(program, target):
    a = np.arange(SIZE, dtype="int32")
    b = np.full_like(a, -7)
    tile.compile(program, target=target)(a, b)
    assert b.tolist() == expected(program.name, a).tolist()


@pytest.mark.parametrize("target", ["cuda:sm_70", "cuda:sm_90a", "hip:gfx942"])
@pytest.mark.parametrize("program", PROGRAMS[:-1], ids=lambda program: program.name)
def test_nothing_vanishes_on_the_way_to_a_gpu(program, target):
    assert "TILE_KERNEL(1, " in tile.lower(program, target=target).kernel_source


@pytest.mark.parametrize("target", TARGETS)
def test_eager_functions(target):
    @tile.jit(target=target)
    def add(A, B):
        M, N = T.const("M, N")
        A: T.Tensor((M, N), "float32")
        B: T.Tensor((M, N), "float32")
        C = T.empty((M, N), "float32")
        for i, j in T.Parallel(M, N):
            C[i, j] = A[i, j] + B[i, j]
        return C

    a = np.arange(15, dtype="float32").reshape(3, 5)
    for _ in range(2):
        assert (add(a, a) == a * 2).all()
