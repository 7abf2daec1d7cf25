"""Loops: shared out among threads, pipelined, serial, unrolled, vectorised."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def Parallel():
    """`T.Parallel` shares the points of a box out among the threads."""

    @tile.jit
    def outer(A: T.Tensor((6,), "int32"), B: T.Tensor((10,), "int32")):
        C = T.empty((6, 10), "int32")
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(6, 10):
                C[i, j] = A[i] * B[j]
        return C

    a, b = np.arange(6, dtype="int32"), np.arange(10, dtype="int32")
    assert (outer(a, b) == np.outer(a, b)).all()


def Pipelined():
    """`T.Pipelined` fetches tiles ahead, while the threads work on those that are there."""

    @tile.jit
    def product(A: T.Tensor((32, 128), "float16"), B: T.Tensor((128, 32), "float16")):
        C = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[:, k * 32 : k * 32 + 32], a)
                T.copy(B[k * 32 : k * 32 + 32, :], b)
                T.gemm(a, b, c)
            T.copy(c, C)
        return C

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((32, 128), (128, 32)))
    assert (product(a, b) == a.astype("float32") @ b.astype("float32")).all()


def serial():
    """`T.serial`, also written `T.Serial`: one round after the other, in any step."""

    @tile.jit
    def horner(A: T.Tensor((8,), "int32"), X: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            value = T.alloc_var("int32", init=0)
            for k in T.serial(7, -1, -1):
                value = value * X[tx] + A[k]
            for _ in T.Serial(2):
                value += 1
            B[tx] = value
        return B

    a, x = np.arange(8, dtype="int32"), np.arange(-16, 16, dtype="int32")
    assert (horner(a, x) == np.polyval(a[::-1], x) + 2).all()


def unroll():
    """`T.unroll`, also written `T.Unroll`: rounds written out, at once or by the compiler."""

    @tile.jit
    def squared_four_times(A: T.Tensor((32,), "uint32")):
        B = T.empty((32,), "uint32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                value = T.alloc_var("uint32", init=A[i])
                for _ in T.unroll(2):
                    value *= value
                for _ in T.Unroll(2, explicit=True):
                    value *= value
                B[i] = value
        return B

    a = np.arange(32, dtype="uint32")
    assert (squared_four_times(a) == a**16).all()


def vectorized():
    """`T.vectorized`, also written `T.Vectorized`: one access for all rounds."""

    @tile.jit
    def moved(A: T.Tensor((32, 4), "int32")):
        B = T.empty((32, 4), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            four = T.alloc_local((4,), "int32")
            for v in T.vectorized(4):
                four[v] = A[tx, v]
            for v in T.Vectorized(4):
                B[tx, v] = four[v] + 1
        return B

    a = np.arange(128, dtype="int32").reshape(32, 4)
    assert (moved(a) == a + 1).all()


def parallel():
    """`T.parallel` shares out a range that need not begin at zero."""

    @tile.jit
    def differences(A: T.Tensor((33,), "int32")):
        B = T.empty((33,), "int32")
        with T.Kernel(1, threads=32):
            B[0] = A[0]
            for i in T.parallel(1, 33):
                B[i] = A[i] - A[i - 1]
        return B

    a = np.arange(33, dtype="int32") ** 2
    assert (differences(a) == np.diff(a, prepend=0)).all()


def grid():
    """`T.grid` nests serial loops."""

    @tile.jit
    def blurred(A: T.Tensor((34, 34), "int32")):
        B = T.empty((32, 32), "int32")
        with T.Kernel(32, threads=32) as y:
            x = T.get_thread_binding()
            total = T.alloc_var("int32", init=0)
            for i, j in T.grid(3, 3):
                total += A[y + i, x + j]
            B[y, x] = total // 9
        return B

    a = np.random.default_rng(0).integers(0, 256, (34, 34)).astype("int32")
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3))
    assert (blurred(a) == windows.sum((2, 3)) // 9).all()


def loop_break():
    """`T.loop_break` leaves a loop, as `break` does."""

    @tile.jit
    def first_zeros(A: T.Tensor((32, 16), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            at = T.alloc_var("int32", init=16)
            for k in T.serial(16):
                if A[tx, k] == 0:
                    at = k
                    T.loop_break()
            B[tx] = at
        return B

    a = np.random.default_rng(0).integers(0, 4, (32, 16)).astype("int32")
    a[:, 15] = 0
    assert (first_zeros(a) == (a == 0).argmax(1)).all()
