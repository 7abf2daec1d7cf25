"""Rotary position embedding of queries, in place: pairs of numbers turn by a position's angle.

X (tokens, heads, dim) float16, overwritten; positions (tokens,) int32. Number j of the first
half pairs with number j of the second; frequency j is 10000^(-2 j / dim).
"""

import math

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 2, 32), (45, 3, 64)]


@tilelang.jit
def rotary(heads, dim, base=10000.0, block=16):
    """Turn all pairs of a block of tokens, one head per block."""
    tokens = T.dynamic("tokens")
    half = dim // 2

    @T.prim_func
    def main(X: T.Tensor((tokens, heads, dim), "float16"), positions: T.Tensor((tokens,), "int32")):
        with T.Kernel(T.ceildiv(tokens, block), heads, threads=128) as (bx, h):
            first = T.alloc_fragment((block, half), "float32")
            second = T.alloc_fragment((block, half), "float32")
            sine = T.alloc_fragment((block, half), "float32")
            cosine = T.alloc_fragment((block, half), "float32")
            T.copy(X[bx * block : (bx + 1) * block, h, 0:half], first)
            T.copy(X[bx * block : (bx + 1) * block, h, half:dim], second)
            for i, j in T.Parallel(block, half):
                frequency = T.exp(j * (-2 * math.log(base) / dim))
                angle = positions[bx * block + i] * frequency
                sine[i, j] = T.sin(angle)
                cosine[i, j] = T.cos(angle)
            for i, j in T.Parallel(block, half):
                X[bx * block + i, h, j] = first[i, j] * cosine[i, j] - second[i, j] * sine[i, j]
                X[bx * block + i, h, half + j] = (
                    first[i, j] * sine[i, j] + second[i, j] * cosine[i, j]
                )

    return main


def check(tokens, heads, dim):
    """Compare one size with NumPy, where pairs are complex numbers."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((tokens, heads, dim)).astype("float16")
    positions = rng.integers(0, 2000, tokens).astype("int32")
    angles = np.outer(positions, 10000.0 ** (-2 * np.arange(dim // 2) / dim))
    pairs = x[..., : dim // 2] + 1j * x[..., dim // 2 :].astype("float64")
    turned = pairs * np.exp(1j * angles)[:, None]
    rotary(heads, dim)(x, positions)
    expected = np.concatenate([turned.real, turned.imag], -1)
    np.testing.assert_allclose(x, expected, rtol=1e-2, atol=4e-3)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"rotary embedding: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
