"""Parts of kernels with names."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def macro():
    """`T.macro` makes statements a function; a `T.Ref` parameter is a place to store to.

    What it makes is a `T.Macro`.
    """

    @T.macro
    def divide(a, b, quotient: T.Ref, rest: T.Ref):
        quotient = a // b
        rest = a % b

    @tile.jit
    def divided(A: T.Tensor((32,), "int32"), by: T.int32):
        B = T.empty((2, 32), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                divide(A[i], by, B[0, i], B[1, i])
        return B

    assert isinstance(divide, T.Macro)
    a = np.arange(-16, 16, dtype="int32")
    assert (divided(a, 5) == [a // 5, a % 5]).all()


def meta_class():
    """`T.meta_class` is a class for kernels: its methods are traced where they are called.

    `T.inline` makes one method such.
    """

    @T.meta_class
    class Extremes:
        def __init__(self, first):
            self.low = T.alloc_var("int32", init=first)
            self.high = T.alloc_var("int32", init=first)

        def add(self, value):
            self.low = T.min(self.low, value)
            self.high = T.max(self.high, value)

    class Counter:
        def __init__(self):
            self.count = T.alloc_var("int32", init=0)

        @T.inline
        def add(self, value):
            if value % 2 == 0:
                self.count += 1

    @tile.jit
    def told(A: T.Tensor((32, 8), "int32")):
        B = T.empty((3, 32), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            extremes, even = Extremes(A[tx, 0]), Counter()
            for k in T.serial(8):
                extremes.add(A[tx, k])
                even.add(A[tx, k])
            B[0, tx] = extremes.low
            B[1, tx] = extremes.high
            B[2, tx] = even.count
        return B

    a = np.random.default_rng(0).integers(0, 99, (32, 8)).astype("int32")
    assert (told(a) == [a.min(1), a.max(1), (a % 2 == 0).sum(1)]).all()
