"""Expressions."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def PrimExpr():
    """`T.PrimExpr` is a value of a kernel: what functions take that compute in one."""

    def gelu(x: T.PrimExpr) -> T.PrimExpr:
        return x / 2 * (1 + T.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    @tile.jit
    def activated(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = gelu(A[i])
        return B

    a = np.linspace(-3, 3, 32, dtype="float32")
    expected = a / 2 * (1 + np.tanh(0.7978845608 * (a + 0.044715 * a**3)))
    np.testing.assert_allclose(activated(a), expected, rtol=1e-4, atol=1e-6)
