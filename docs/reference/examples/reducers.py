"""Accumulators that all threads update."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def reducer_update():
    """`T.reducer_init`, `T.reducer_update` in loops of any number, `T.finalize_reducer` once."""

    @tile.jit
    def moments(A: T.Tensor((4, 64), "int32")):
        B = T.empty((2,), "int32")
        with T.Kernel(1, threads=64):
            sums = T.alloc_reducer((2,), "int32", op="sum")
            T.reducer_init(sums, init=1000)
            for k in T.serial(4):
                for i in T.Parallel(64):
                    T.reducer_update(sums[0], A[k, i])
                    T.reducer_update(sums[1], A[k, i] * A[k, i])
            T.finalize_reducer(sums, B)
        return B

    a = np.arange(256, dtype="int32").reshape(4, 64)
    assert moments(a).tolist() == [1000 + a.sum(), 1000 + (a * a).sum()]
