"""Running sums and maxima."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def cumsum():
    """`T.cumsum` adds up along a dimension, here from the end; `T.cummax` keeps the largest."""

    @tile.jit
    def scanned(A: T.Tensor((4, 32), "int32")):
        B = T.empty((4, 32), "int32")
        C = T.empty((4, 32), "int32")
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((4, 32), "int32")
            b = T.alloc_shared((4, 32), "int32")
            T.copy(A, a)
            T.cumsum(a, b, dim=1, reverse=True)
            T.copy(b, B)
            T.cummax(a, dim=1)  # in place
            T.copy(a, C)
        return B, C

    a = np.random.default_rng(0).integers(-9, 99, (4, 32)).astype("int32")
    b, c = scanned(a)
    assert (b == a[:, ::-1].cumsum(1)[:, ::-1]).all()
    assert (c == np.maximum.accumulate(a, 1)).all()
