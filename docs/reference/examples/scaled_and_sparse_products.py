"""Products of tiles with scales, and of tiles without their zeros."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def gemm_blockscaled():
    """`T.gemm_blockscaled` multiplies MXFP8: 32 neighbours along K share a power of two."""
    import ml_dtypes

    @tile.jit
    def product(
        A: T.Tensor((32, 64), "float8_e4m3fn"),
        B: T.Tensor((64, 32), "float8_e4m3fn"),
        scales_a: T.Tensor((32, 2), "float8_e8m0fnu"),
        scales_b: T.Tensor((32, 2), "float8_e8m0fnu"),
    ):
        C = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 64), "float8_e4m3fn")
            b = T.alloc_shared((64, 32), "float8_e4m3fn")
            sa = T.alloc_shared((32, 2), "float8_e8m0fnu")
            sb = T.alloc_shared((32, 2), "float8_e8m0fnu")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(scales_a, sa)
            T.copy(scales_b, sb)
            T.clear(c)
            T.gemm_blockscaled(
                a, b, c, sa, sb, k_start=0, sf_a_granularity_k=32, sf_b_granularity_k=32
            )
            T.copy(c, C)
        return C

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(ml_dtypes.float8_e4m3fn) for s in ((32, 64), (64, 32)))
    sa, sb = (2.0 ** rng.integers(-2, 3, (2, 32, 2))).astype(ml_dtypes.float8_e8m0fnu)
    whole_a, whole_b = (x.astype("float32").repeat(32, 1) for x in (sa, sb))
    expected = (a.astype("float32") * whole_a) @ (b.astype("float32") * whole_b.T)
    assert (product(a, b, sa, sb) == expected).all()


def gemm_sp():
    """`T.gemm_sp` multiplies a tile of which two of four neighbours along K are kept."""

    @tile.jit
    def product(
        kept: T.Tensor((32, 16), "float16"),
        places: T.Tensor((32, 2), "int16"),
        B: T.Tensor((32, 32), "float16"),
    ):
        C = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 16), "float16")
            e = T.alloc_shared((32, 2), "int16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(kept, a)
            T.copy(places, e)
            T.copy(B, b)
            T.clear(c)
            T.gemm_sp(a, e, b, c)
            T.copy(c, C)
        return C

    rng = np.random.default_rng(0)
    kept, b = (rng.integers(-4, 5, s).astype("float16") for s in ((32, 16), (32, 32)))
    places = np.full((32, 2), 0b1101_1101_1101_1101, "uint16").view("int16")  # elements 1 and 3
    dense = np.zeros((32, 32), "float32")
    dense[:, 1::2] = kept
    assert (product(kept, places, b) == dense @ b.astype("float32")).all()
