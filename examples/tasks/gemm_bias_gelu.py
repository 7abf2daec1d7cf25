"""GEMM + bias + GELU.

A matrix product whose bias and activation are applied to sums in registers, before they are
written.
"""

import numpy as np

import tile_api as tile


@tile.function
def linear_gelu(x, weight, bias):
    """Return gelu(x @ weight + bias), with the tanh that GPT-2 uses."""
    y = x @ weight + bias
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def arguments(random):
    """Return arguments of a small case."""
    x, weight = (
        random.standard_normal((40, 96), np.float32),
        random.standard_normal((96, 64), np.float32),
    )
    return x, weight / 8, random.standard_normal(64, np.float32)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = linear_gelu(*given)
    expected = linear_gelu.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("gemm bias gelu: agrees with NumPy")


if __name__ == "__main__":
    main()
