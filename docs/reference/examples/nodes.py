"""Classes of expressions."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def Add():
    """Classes build expressions: `T.Add`, `T.Sub`, `T.Mul`, `T.Div`, `T.Mod`, `T.Min`, `T.Max`.

    `T.FloorDiv` and `T.FloorMod` round down, `T.Div` and `T.Mod` of integers toward zero.
    """

    @tile.jit
    def computed(A: T.Tensor((32,), "int32")):
        B = T.empty((3, 32), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.Mul(T.Add(A[i], 1), T.Sub(A[i], 1))
                B[1, i] = T.Add(T.Mul(T.Div(A[i], 3), 10), T.Mod(A[i], 3))
                B[2, i] = T.Max(T.Min(T.FloorDiv(A[i], 3), 2), T.FloorMod(A[i], 3))
        return B

    a = np.arange(-16, 16, dtype="int32")
    quotient = np.trunc(a / 3).astype("int32")
    expected = [
        a * a - 1,
        quotient * 10 + a - 3 * quotient,
        np.maximum((a // 3).clip(max=2), a % 3),
    ]
    assert (computed(a) == expected).all()


def EQ():
    """Conditions: `T.EQ`, `T.NE`, `T.LT`, `T.LE`, `T.GT`, `T.GE`, `T.And`, `T.Or`, `T.Not`."""

    @tile.jit
    def told(A: T.Tensor((32,), "int32")):
        B = T.empty((3, 32), "bool")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.And(T.GE(A[i], 0), T.LT(A[i], 9))
                B[1, i] = T.Or(T.LE(A[i], -9), T.GT(A[i], 9))
                B[2, i] = T.Not(T.Or(T.EQ(A[i], 3), T.NE(A[i] % 2, 1)))
        return B

    a = np.arange(-16, 16, dtype="int32")
    expected = [(a >= 0) & (a < 9), (a <= -9) | (a > 9), (a != 3) & (a % 2 == 1)]
    assert (told(a) == expected).all()


def Cast():
    """`T.Cast` converts, `T.Select` chooses; constants are `T.IntImm` and `T.FloatImm`.

    `T.Call` calls an intrinsic by name, `T.BufferLoad` is an element.
    """

    @tile.jit
    def computed(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                x = T.BufferLoad(A, [i])
                root = T.Call("float32", "sqrt", [x])
                few = T.LT(x, T.FloatImm("float32", 9.0))
                B[i] = T.Select(few, T.Cast("int32", root), T.IntImm("int32", -1))
        return B

    a = np.arange(32, dtype="float32")
    assert (computed(a) == np.where(a < 9, np.sqrt(a).astype("int32"), -1)).all()


def Ramp():
    """Vectors: `T.Ramp`, `T.Broadcast`, and `T.Shuffle`, which picks lanes."""

    @tile.jit
    def turned(A: T.Tensor((32, 4), "int32")):
        B = T.empty((32, 4), "int32")
        with T.Kernel(1, threads=32):
            row, lanes = T.get_thread_binding(), T.Ramp(0, 1, 4)
            four = A[row, lanes] + T.Broadcast(row, 4)
            B[row, lanes] = T.Shuffle([four], [3, 2, 1, 0])
        return B

    a = np.arange(128, dtype="int32").reshape(32, 4)
    assert (turned(a) == (a + np.arange(32)[:, None])[:, ::-1]).all()


def StringImm():
    """`T.StringImm` is text, and like all classes tells what an expression is."""

    def kind(value):
        for cls in (T.StringImm, T.IntImm, T.Add):
            if isinstance(value, cls):
                return cls.__name__
        return "other"

    n = T.dynamic("n")
    assert kind(T.StringImm("shared")) == "StringImm"
    assert [kind(n + 1), kind(n), kind(T.int32(3))] == ["Add", "other", "IntImm"]
