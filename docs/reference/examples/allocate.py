"""Tiles, variables, workspaces and outputs."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def alloc_shared():
    """`T.alloc_shared` is memory through which the threads of a block exchange."""

    @tile.jit
    def reversed_parts(A: T.Tensor((4, 32), "int32")):
        B = T.empty((4, 32), "int32")
        with T.Kernel(4, threads=32) as bx:
            part = T.alloc_shared((32,), "int32")
            T.copy(A[bx, :], part)
            for i in T.Parallel(32):
                B[bx, i] = part[31 - i]  # which another thread may have fetched
        return B

    a = np.arange(128, dtype="int32").reshape(4, 32)
    assert (reversed_parts(a) == a[:, ::-1]).all()


def alloc_fragment():
    """`T.alloc_fragment` is a tile in registers: what a block goes on working on."""

    @tile.jit
    def sum_of_rows(A: T.Tensor((16, 32), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            total = T.alloc_fragment((32,), "int32")
            T.clear(total)
            for row in T.serial(16):
                for i in T.Parallel(32):
                    total[i] += A[row, i]
            T.copy(total, B)
        return B

    a = np.arange(512, dtype="int32").reshape(16, 32)
    assert (sum_of_rows(a) == a.sum(0)).all()


def alloc_local():
    """`T.alloc_local` is an array that each thread has for itself."""

    @tile.jit
    def sorted_pairs(A: T.Tensor((32, 2), "int32")):
        B = T.empty((32, 2), "int32")
        with T.Kernel(1, threads=32):
            thread = T.get_thread_binding()
            pair = T.alloc_local((2,), "int32")
            pair[0] = A[thread, 0]
            pair[1] = A[thread, 1]
            B[thread, 0] = T.min(pair[0], pair[1])
            B[thread, 1] = T.max(pair[0], pair[1])
        return B

    a = np.arange(64, dtype="int32").reshape(32, 2) * 37 % 64
    assert (sorted_pairs(a) == np.sort(a, 1)).all()


def alloc_var():
    """`T.alloc_var` is a variable: assignments store to it."""

    @tile.jit
    def collatz(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            thread = T.get_thread_binding()
            n = T.alloc_var("int32", init=A[thread])
            steps = T.alloc_var("int32", init=0)
            while n > 1:
                n = T.if_then_else(n % 2 == 0, n // 2, 3 * n + 1)
                steps += 1
            B[thread] = steps
        return B

    steps = collatz(np.arange(1, 33, dtype="int32"))
    assert steps[[0, 1, 5, 26]].tolist() == [0, 1, 8, 111]  # of 1, 2, 6 and 27


def alloc_global():
    """`T.alloc_global` is memory of all blocks, for one launch."""

    @tile.jit
    def shares(A: T.Tensor((4, 8), "int32")):
        B = T.empty((4, 8), "int32")
        with T.Kernel(4, threads=32) as bx:
            sums = T.alloc_global((4,), "int32")
            total = T.alloc_fragment((1,), "int32")
            T.reduce_sum(A[bx, :], total)
            T.copy(total, sums[bx])
            T.sync_grid()
            for i in T.Parallel(8):
                B[bx, i] = A[bx, i] * 100 // (sums[0] + sums[1] + sums[2] + sums[3])
        return B

    a = np.arange(32, dtype="int32").reshape(4, 8)
    assert (shares(a) == a * 100 // a.sum()).all()


def alloc_buffer():
    """`T.alloc_buffer` takes any scope, as in TVM."""

    @tile.jit
    def transposed(A: T.Tensor((8, 4), "int32")):
        B = T.empty((4, 8), "int32")
        with T.Kernel(1, threads=32):
            a = T.alloc_buffer((8, 4), "int32", scope="shared")
            T.copy(A, a)
            for i, j in T.Parallel(4, 8):
                B[i, j] = a[j, i]
        return B

    a = np.arange(32, dtype="int32").reshape(8, 4)
    assert (transposed(a) == a.T).all()


def alloc_reducer():
    """`T.alloc_reducer` adds up over all threads, wherever elements lie."""

    @tile.jit
    def histogram(A: T.Tensor((256,), "int32")):
        B = T.empty((4,), "int32")
        with T.Kernel(1, threads=64):
            counts = T.alloc_reducer((4,), "int32", op="sum")
            T.reducer_init(counts)
            for i in T.Parallel(256):
                T.reducer_update(counts[A[i]], 1)
            T.finalize_reducer(counts, B)
        return B

    a = np.arange(256, dtype="int32") ** 2 % 4
    assert (histogram(a) == np.bincount(a, minlength=4)).all()


def alloc_tmem():
    """`T.alloc_tmem` is the memory of a matrix unit, in which its products add up.

    Runs on: interpret.
    """

    @tile.jit
    def product(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16")):
        C = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_tmem((32, 32), "float32")
            out = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, out)
            T.copy(out, C)
        return C

    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (2, 32, 32)).astype("float16")
    assert (product(a, b) == a.astype("float32") @ b.astype("float32")).all()


def empty():
    """`T.empty` is an output, made anew by each call; a function may return several."""

    @tile.jit
    def quotients(A: T.Tensor((16,), "int32"), by: T.int32):
        whole = T.empty((16,), "int32")
        rest = T.empty(16, dtype="int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                whole[i] = A[i] // by
                rest[i] = A[i] % by
        return whole, rest

    a = np.arange(-8, 8, dtype="int32")
    whole, rest = quotients(a, 3)
    assert (whole == a // 3).all()
    assert (rest == a % 3).all()
