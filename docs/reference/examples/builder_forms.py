"""Statements as TVM's builders write them."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def If():
    """`T.If`, `T.Then` and `T.Else` are branches as frames."""

    @tile.jit
    def clipped(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            i = T.get_thread_binding()
            with T.If(A[i] < 9):
                with T.Then():
                    B[i] = A[i]
                with T.Else():
                    B[i] = 9
        return B

    a = np.arange(32, dtype="int32")
    assert (clipped(a) == a.clip(max=9)).all()


def While():
    """`T.While` is a loop as a frame."""

    @tile.jit
    def bits(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            i = T.get_thread_binding()
            rest = T.alloc_var("int32", init=A[i])
            count = T.alloc_var("int32", init=0)
            with T.While(rest != 0):
                rest = rest // 2
                count = count + 1
            B[i] = count
        return B

    a = np.arange(32, dtype="int32")
    assert bits(a).tolist() == [int(x).bit_length() for x in a]


def sblock():
    """`T.sblock` names a block, `T.axis` binds its axes to loops, `T.init` begins a sum.

    `T.where` guards it; `T.reads` and `T.writes` say what it touches. `T.block` is the old name.
    """

    @tile.jit
    def sums(A: T.Tensor((5, 7), "int32")):
        B = T.empty((5,), "int32")
        C = T.empty((5,), "int32")
        with T.Kernel(1, threads=1):
            for i, k in T.grid(8, 7):
                with T.sblock("sum"):
                    row = T.axis.spatial(8, i)
                    column = T.axis.reduce(7, k)
                    T.where(i < 5)
                    T.reads(A[row, column])
                    T.writes(B[row])
                    with T.init():
                        B[row] = 0
                    B[row] += A[row, column]
            for i in T.serial(5):
                with T.block("double"):
                    row = T.axis.spatial(5, i)
                    C[row] = B[row] * 2
        return B, C

    a = np.arange(35, dtype="int32").reshape(5, 7)
    b, c = sums(a)
    assert (b == a.sum(1)).all()
    assert (c == 2 * b).all()
