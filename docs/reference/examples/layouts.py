"""Layouts with names, for `T.annotate_layout`."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def make_swizzled_layout():
    """`T.make_swizzled_layout` spreads a tile over all banks, `T.make_linear_layout` does not.

    `T.make_mma_swizzle_layout` is either.
    """

    @tile.jit
    def product(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16")):
        C = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 64), "float16")
            b = T.alloc_shared((64, 32), "float16")
            out = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.annotate_layout(
                {
                    a: T.make_swizzled_layout(a),
                    b: T.make_mma_swizzle_layout(b, is_smooth=False),
                    out: T.make_linear_layout(out),
                }
            )
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, out)
            T.copy(out, C)
        return C

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((32, 64), (64, 32)))
    assert (product(a, b) == a.astype("float32") @ b.astype("float32")).all()


def make_full_bank_swizzled_layout():
    """Swizzles by the width in which 16 bytes are exchanged: 128, 64 and 32 bytes.

    `T.make_full_bank_swizzled_layout`, `T.make_half_bank_swizzled_layout`,
    `T.make_quarter_bank_swizzled_layout`; `T.make_wgmma_swizzled_layout` takes what fits.
    """

    @tile.jit
    def transposed(A: T.Tensor((64, 64), "float16")):
        B = T.empty((64, 64), "float16")
        with T.Kernel(1, threads=64):
            wide = T.alloc_shared((64, 64), "float16")
            half = T.alloc_shared((64, 32), "float16")
            quarter = T.alloc_shared((64, 16), "float16")
            fitting = T.alloc_shared((64, 16), "float16")
            T.annotate_layout(
                {
                    wide: T.make_full_bank_swizzled_layout(wide),
                    half: T.make_half_bank_swizzled_layout(half),
                    quarter: T.make_quarter_bank_swizzled_layout(quarter),
                    fitting: T.make_wgmma_swizzled_layout(fitting),
                }
            )
            T.copy(A, wide)
            T.copy(wide[:, 0:32], half)
            T.copy(wide[:, 32:48], quarter)
            T.copy(wide[:, 48:64], fitting)
            for i, j in T.Parallel(64, 32):
                B[j, i] = half[i, j]
            for i, j in T.Parallel(64, 16):
                B[32 + j, i] = quarter[i, j]
                B[48 + j, i] = fitting[i, j]
        return B

    a = np.random.default_rng(0).integers(0, 99, (64, 64)).astype("float16")
    assert (transposed(a) == a.T).all()


def make_gemm_fragment_8x8():
    """How a warp holds 8 x 8 elements: `T.make_gemm_fragment_8x8`, or its transpose.

    That is `T.make_gemm_fragment_8x8_transposed`.
    """

    @tile.jit
    def transposed(A: T.Tensor((8, 8), "float16")):
        B = T.empty((8, 8), "float16")
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((8, 8), "float16")
            b = T.alloc_fragment((8, 8), "float16")
            T.annotate_layout(
                {
                    a: T.make_gemm_fragment_8x8(),
                    b: T.make_gemm_fragment_8x8_transposed(),
                }
            )
            T.copy(A, a)
            for i, j in T.Parallel(8, 8):
                b[j, i] = a[i, j]  # in the same thread: nothing moves
            T.copy(b, B)
        return B

    a = np.arange(64, dtype="float16").reshape(8, 8)
    assert (transposed(a) == a.T).all()


def make_fully_replicated_layout_fragment():
    """`T.make_fully_replicated_layout_fragment` gives each thread the whole tile."""

    @tile.jit
    def scaled(A: T.Tensor((64, 4), "float32"), factors: T.Tensor((4,), "float32")):
        B = T.empty((64, 4), "float32")
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((4,), "float32")
            T.annotate_layout({f: T.make_fully_replicated_layout_fragment(f, 64)})
            T.copy(factors, f)
            for i, j in T.Parallel(64, 4):
                B[i, j] = A[i, j] * f[j]
        return B

    a, factors = np.arange(256, dtype="float32").reshape(64, 4), np.arange(4, dtype="float32")
    assert (scaled(a, factors) == a * factors).all()


def Layout():
    """`T.Layout` is a function from coordinates to places: here rows have a gap behind them.

    A `T.Fragment` is one to threads and their registers.
    """

    @tile.jit
    def transposed(A: T.Tensor((32, 32), "float32")):
        B = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_fragment((32, 32), "float32")
            T.annotate_layout(
                {
                    a: T.Layout((32, 32), lambda i, j: i * 33 + j),
                    b: T.Fragment((32, 32), lambda i, j: (i, j)),  # thread i has row i
                }
            )
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                b[i, j] = a[j, i]
            T.copy(b, B)
        return B

    a = np.arange(1024, dtype="float32").reshape(32, 32)
    assert (transposed(a) == a.T).all()
