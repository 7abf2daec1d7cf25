"""Names for values."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def let():
    """`T.let` names a value, to the end of the block; `T.Let` in an expression."""

    @tile.jit
    def polynomial(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            x, y = T.int32(), T.int32()
            with T.let(x, A[tx]):
                square = T.Let(y + 1, where={y: x * x})
                B[tx] = square * square
        return B

    a = np.arange(32, dtype="int32")
    assert (polynomial(a) == (a * a + 1) ** 2).all()
