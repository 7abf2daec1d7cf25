"""Conversions, bit patterns, selection, extreme values."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def cast():
    """`T.cast` converts; floats of 8 bits saturate, unless they shall not."""
    import ml_dtypes

    @tile.jit
    def converted(A: T.Tensor((4,), "float32")):
        B = T.empty((4,), "int32")
        C = T.empty((2, 4), "float8_e5m2")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = T.cast(A[i], "int32")  # toward zero
                C[0, i] = T.cast(A[i], "float8_e5m2")
                C[1, i] = T.cast(A[i], "float8_e5m2", sat=False)
        return B, C

    a = np.array([2.7, -2.7, 3.4, 1e6], "float32")
    b, c = converted(a)
    assert b.tolist() == [2, -2, 3, 1000000]
    assert c.astype("float32").tolist() == [[2.5, -2.5, 3.5, 57344], [2.5, -2.5, 3.5, np.inf]]
    assert c.dtype == ml_dtypes.float8_e5m2


def reinterpret():
    """`T.reinterpret` reads bits as another type: here a float's exponent."""

    @tile.jit
    def exponents(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = (T.reinterpret(A[i], "int32") >> 23) - 127
        return B

    a = np.arange(1, 33, dtype="float32")
    assert (exponents(a) == np.frexp(a)[1] - 1).all()


def if_then_else():
    """`T.if_then_else` evaluates one side alone: the other may read where nothing is."""

    @tile.jit
    def shifted(A: T.Tensor((32,), "int32"), by: T.int32):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = T.if_then_else(i < by, -1, A[i - by])
        return B

    a = np.arange(32, dtype="int32")
    assert (shifted(a, 5) == [-1] * 5 + list(range(27))).all()


def infinity():
    """`T.infinity`, `T.max_value`, `T.min_value`: where a search for an extreme begins."""

    @tile.jit
    def extremes(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "int32")):
        C = T.empty((1,), "float32")
        D = T.empty((2,), "int32")
        with T.Kernel(1, threads=32):
            highest = T.alloc_var("float32", init=-T.infinity("float32"))
            most = T.alloc_var("int32", init=T.min_value("int32"))
            least = T.alloc_var("int32", init=T.max_value("int32"))
            for k in T.serial(32):
                highest = T.max(highest, A[k])
                most = T.max(most, B[k])
                least = T.min(least, B[k])
            C[0] = highest
            D[0] = most
            D[1] = least
        return C, D

    a = np.full(32, -np.inf, "float32")
    b = np.random.default_rng(0).integers(-(2**31), 2**31, 32).astype("int32")
    highest, ends = extremes(a, b)
    assert highest[0] == -np.inf
    assert ends.tolist() == [b.max(), b.min()]
