"""Cross entropy.

The loss of each row against the position of its target, from logits that a product makes: they are
folded as they come, and never written.
"""

import numpy as np

import tile_api as tile


@tile.function
def cross_entropy(x, weight, target):
    """Return logsumexp(z) - z[target] of z = x @ weight, by rows."""
    z = x @ weight
    hit = np.arange(weight.shape[1]) == target[:, None]
    return np.logaddexp.reduce(z, axis=-1) - np.where(hit, z, 0).sum(axis=-1)


def arguments(random):
    """Return arguments of a small case."""
    x, weight = (
        random.standard_normal((20, 32), np.float32),
        random.standard_normal((32, 200), np.float32),
    )
    return x, weight / 4, random.integers(0, 200, 20, np.int32)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = cross_entropy(*given)
    expected = cross_entropy.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("cross entropy: agrees with NumPy")


if __name__ == "__main__":
    main()
