"""W4A16.

Weights of four bits, two in a byte, with a scale for each group of 32 columns, times activations of
sixteen bits: weights are unpacked on their way into the product, and never lie in memory as floats.
"""

import numpy as np

import tile_api as tile


@tile.function
def w4a16(x, packed, scale):
    """Return x @ weight.T: x (m, k), packed (n, k / 2) of bytes, scale (n, k / 32)."""
    low, high = (packed & 15).astype("int8") - 8, (packed >> 4).astype("int8") - 8
    weight = np.stack([low, high], axis=-1).reshape(packed.shape[0], -1)
    return x @ (weight * np.repeat(scale, 32, axis=1)).T


def arguments(random):
    """Return arguments of a small case."""
    x = (random.standard_normal((16, 64)) / 8).astype("float16")
    packed = random.integers(0, 256, (48, 32), np.uint8)
    return x, packed, (random.random((48, 2)) / 8).astype("float16")


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = w4a16(*given)
    expected = w4a16.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("w4a16: agrees with NumPy")


if __name__ == "__main__":
    main()
