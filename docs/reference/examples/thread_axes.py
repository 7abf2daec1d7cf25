"""Indices of threads as loops."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def thread_binding():
    """`T.thread_binding` is a loop that threads share out, as TVM writes it."""

    @tile.jit
    def doubled(A: T.Tensor((4, 32), "int32")):
        B = T.empty((4, 32), "int32")
        with T.Kernel(4, threads=32):
            row = T.thread_binding(0, 4, thread="blockIdx.x")
            for column in T.thread_binding(0, 32, thread="threadIdx.x"):
                B[row, column] = A[row, column] * 2
        return B

    a = np.arange(128, dtype="int32").reshape(4, 32)
    assert (doubled(a) == 2 * a).all()
