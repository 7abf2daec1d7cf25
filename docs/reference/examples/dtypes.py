"""Element types."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def dtypes():
    """Types are names or strings; called, they convert; their names have widths and lanes."""

    @tile.jit
    def halves(A: T.Tensor((32,), T.int32)):
        B = T.empty((32,), "float16")
        C = T.empty((32,), "float32")
        with T.Kernel(1, threads=32):
            pairs = T.alloc_local((2,), T.float32x2)
            for i in T.Parallel(32):
                B[i] = T.float16(A[i]) / 2
            tx = T.get_thread_binding()
            pairs[0] = T.float32x2(A[tx], -A[tx])
            pairs[1] = pairs[0] * T.float32(0.5)
            C[tx] = T.extract_lane(pairs[1], 1)
        return B, C

    a = np.arange(32, dtype="int32")
    b, c = halves(a)
    assert (b == a / 2).all()
    assert (c == -a / 2).all()
