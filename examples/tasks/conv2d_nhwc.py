"""Conv2d NHWC.

Images with channels last, as a product without im2col in memory: windows are views.
"""

import numpy as np

import tile_api as tile


@tile.function
def conv2d(x, weight):
    """Return (n, h, w, o): x (n, h, w, c) with zeros around, weight (3, 3, c, o)."""
    x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, weight)


def arguments(random):
    """Return arguments of a small case."""
    x = random.standard_normal((2, 12, 10, 16), np.float32)
    return x, random.standard_normal((3, 3, 16, 24), np.float32) / 12


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = conv2d(*given)
    expected = conv2d.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("conv2d nhwc: agrees with NumPy")


if __name__ == "__main__":
    main()
