"""Kernels."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def prim_func():
    """`T.prim_func` traces a kernel at once: a `T.PrimFunc`, which is compiled later."""

    @T.prim_func
    def scaled(A: T.Tensor((64,), "float32"), factor: T.float32, B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * factor

    assert isinstance(scaled, T.PrimFunc)
    assert [p.name for p in scaled.params] == ["A", "factor", "B"]
    kernel = tile.compile(scaled, out_idx=[-1])
    a = np.arange(64, dtype="float32")
    assert (kernel(a, 2.0) == a * 2).all()


def JITFunc():
    """`T.JITFunc` is what tile.jit returns: kernels by their arguments."""

    @tile.jit(out_idx=[-1])
    def repeated(times):
        @T.prim_func
        def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32 * times,), "int32")):
            with T.Kernel(times, threads=32) as bx:
                for i in T.Parallel(32):
                    B[bx * 32 + i] = A[i]

        return main

    def checked(kernels: T.JITFunc):
        a = np.arange(32, dtype="int32")
        for times in (1, 3):
            assert (kernels(times)(a) == np.tile(a, times)).all()

    assert isinstance(repeated, T.JITFunc)
    checked(repeated)
