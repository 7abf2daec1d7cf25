"""C functions, and intrinsics by name."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def call_extern():
    """`T.import_source` compiles C along with a kernel, `T.call_extern` calls it.

    `T.call_pure_extern` is for functions without effect.

    Runs on: cpu, cuda:sm_80, hip:gfx942.
    """

    @tile.jit
    def mixed(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "float32")
        T.import_source("""
        float cube(float x) { return x * x * x; }
        void add_to(float *y, float x) { *y += x; }
        """)
        with T.Kernel(1, threads=32):
            i = T.get_thread_binding()
            B[i] = T.call_pure_extern("float32", "cube", A[i])
            T.call_extern("void", "add_to", T.address_of(B[i]), A[i])
        return B

    a = np.arange(32, dtype="float32")
    assert (mixed(a) == a**3 + a).all()


def call_intrin():
    """`T.call_intrin` calls by name what `T` has as functions."""

    @tile.jit
    def counted(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = T.call_intrin("int32", "tir.popcount", A[i])
        return B

    a = np.arange(32, dtype="int32")
    assert counted(a).tolist() == [bin(x).count("1") for x in a]


def evaluate():
    """`T.evaluate` performs an expression for its effect, and drops its value."""

    @T.prim_func
    def counted(A: T.Tensor((32,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            i = T.get_thread_binding()
            T.evaluate(T.atomic_add(B[A[i]], 1, return_prev=True))

    a, b = np.arange(32, dtype="int32") % 4, np.zeros(4, "int32")
    tile.compile(counted)(a, b)
    assert b.tolist() == [8, 8, 8, 8]
