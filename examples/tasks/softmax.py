"""Softmax.

Rows of any length, of any number of dimensions: one kernel, in which each row is read once, or
in blocks with a running maximum where it does not fit.
"""

import numpy as np

import tile_api as tile


@tile.function
def softmax(x):
    """Return exp(x) over its sum, by rows."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def arguments(random):
    """Return arguments of a small case."""
    return (random.standard_normal((33, 300), np.float32),)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = softmax(*given)
    expected = softmax.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("softmax: agrees with NumPy")


if __name__ == "__main__":
    main()
