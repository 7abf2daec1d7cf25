"""Vectors of lanes, and packed pairs."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def broadcast():
    """`T.ramp` and `T.broadcast` make vectors, also as indices; `T.extract_lane` takes a lane."""

    @tile.jit
    def filled(A: T.Tensor((32,), "int32")):
        B = T.empty((32, 4), "int32")
        C = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            four = T.alloc_local((1,), "int32x4")
            four[0] = T.broadcast(A[tx], 4) + T.ramp(0, 10, 4)
            B[tx, T.ramp(0, 1, 4)] = four[0]
            C[tx] = T.extract_lane(four[0], 3)
        return B, C

    a = np.arange(32, dtype="int32")
    b, c = filled(a)
    assert (b == a[:, None] + np.arange(0, 40, 10)).all()
    assert (c == a + 30).all()


def vectorlow():
    """`T.vectorlow` and `T.vectorhigh` are the halves, which `T.vectorcombine` joins."""

    @tile.jit
    def halves_swapped(A: T.Tensor((32, 4), "float32")):
        B = T.empty((32, 4), "float32")
        with T.Kernel(1, threads=32):
            row, lanes = T.get_thread_binding(), T.ramp(0, 1, 4)
            four = A[row, lanes]
            B[row, lanes] = T.vectorcombine(T.vectorhigh(four), T.vectorlow(four))
        return B

    a = np.arange(128, dtype="float32").reshape(32, 4)
    assert (halves_swapped(a) == a[:, [2, 3, 0, 1]]).all()


def add2():
    """Pairs: `T.add2`, `T.sub2`, `T.mul2`, `T.fma2`, `T.max2`, `T.min2`, `T.abs2`."""

    @tile.jit
    def computed(A: T.Tensor((32, 2), "float16"), B: T.Tensor((32, 2), "float16")):
        C = T.empty((3, 32, 2), "float16")
        with T.Kernel(1, threads=32):
            row, both = T.get_thread_binding(), T.ramp(0, 1, 2)
            a, b = A[row, both], B[row, both]
            C[0, row, both] = T.mul2(T.add2(a, b), T.sub2(a, b))
            C[1, row, both] = T.fma2(a, b, T.abs2(a))
            C[2, row, both] = T.sub2(T.max2(a, b), T.min2(a, b))
        return C

    a, b = np.random.default_rng(0).integers(-9, 10, (2, 32, 2)).astype("float16")
    assert (computed(a, b) == [(a + b) * (a - b), a * b + abs(a), abs(a - b)]).all()
