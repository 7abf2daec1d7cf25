"""Top-k.

The k largest elements of each row, in descending order, and where they are; ties go to the left.
"""

import numpy as np

import tile_api as tile


@tile.function
def top_k(x, k=5):
    """Return values and positions."""
    at = np.argsort(-x, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, at, axis=-1), at


def arguments(random):
    """Return arguments of a small case."""
    return (random.standard_normal((24, 100), np.float32),)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = np.stack(top_k(*given))
    expected = np.stack(top_k.func(*given))
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("top k: agrees with NumPy")


if __name__ == "__main__":
    main()
