"""Transposed tiles, and patches of images."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def transpose():
    """`T.transpose` writes a tile with rows and columns exchanged."""

    @tile.jit
    def transposed(A: T.Tensor((64, 32), "int32")):
        B = T.empty((32, 64), "int32")
        with T.Kernel(2, threads=32) as by:
            a = T.alloc_shared((32, 32), "int32")
            b = T.alloc_shared((32, 32), "int32")
            T.copy(A[by * 32, 0], a)
            T.transpose(a, b)
            T.copy(b, B[0, by * 32])
        return B

    a = np.arange(2048, dtype="int32").reshape(64, 32)
    assert (transposed(a) == a.T).all()


def im2col():
    """`T.im2col` gathers patches of an image: a convolution becomes a product."""

    @tile.jit
    def convolution(
        image: T.Tensor((1, 8, 8, 16), "float16"), weights: T.Tensor((9 * 16, 32), "float16")
    ):
        out = T.empty((64, 32), "float32")
        with T.Kernel(2, threads=128) as by:
            patches = T.alloc_shared((32, 16), "float16")
            w = T.alloc_shared((16, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.serial(9):
                T.im2col(image, patches, by, k, kernel=3, stride=1, dilation=1, pad=1)
                T.copy(weights[k * 16, 0], w)
                T.gemm(patches, w, c)
            T.copy(c, out[by * 32, 0])
        return out

    rng = np.random.default_rng(0)
    image = rng.integers(-3, 4, (1, 8, 8, 16)).astype("float16")
    weights = rng.integers(-3, 4, (144, 32)).astype("float16")
    padded = np.pad(image[0].astype("float32"), ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (0, 1))
    rows = windows.transpose(0, 1, 3, 4, 2).reshape(64, 144)
    assert (convolution(image, weights) == rows @ weights.astype("float32")).all()


def c2d_im2col():
    """`T.c2d_im2col` is the old name of `T.im2col`, and says so."""
    import warnings

    @tile.jit
    def gathered(image: T.Tensor((1, 4, 4, 2), "int32")):
        out = T.empty((16, 2), "int32")
        with T.Kernel(1, threads=32):
            patches = T.alloc_shared((16, 2), "int32")
            T.c2d_im2col(image, patches, 0, 0, kernel=3, stride=1, dilation=1, pad=1)
            T.im2col(image, patches, 0, 4, kernel=3, stride=1, dilation=1, pad=1)
            T.copy(patches, out)
        return out

    image = np.arange(32, dtype="int32").reshape(1, 4, 4, 2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        out = gathered(image)
    assert (out == image.reshape(16, 2)).all()  # of the middle of each patch
    assert "T.c2d_im2col is now called T.im2col" in str(said[0].message)
