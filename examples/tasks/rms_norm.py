"""RMS norm with backward.

The norm, and kernels for the gradients of both arguments, derived from it: no second function is
written. With torch tensors that ask for gradients, ``loss.backward()`` runs the same kernels.
"""

import numpy as np

import tile_api as tile


@tile.function
def rms_norm(x, weight):
    """Return rows of mean square one, times a weight for each column."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * weight


def backward(x, weight, given):
    """Return the gradients of both by the formula, to compare with."""
    r = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)
    scaled = given * weight
    inner = (scaled * x).mean(axis=-1, keepdims=True)
    return r * (scaled - x * r * r * inner), (given * x * r).sum(axis=0)


def arguments(random):
    """Return arguments of a small case."""
    x, given = random.standard_normal((2, 24, 128), np.float32)
    return x, random.standard_normal(128, np.float32), given


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    x, weight, upstream = given
    np.testing.assert_allclose(rms_norm(x, weight), rms_norm.func(x, weight), rtol=1e-4, atol=1e-5)
    _, pull = rms_norm.vjp(x, weight)
    got = np.concatenate([g.ravel() for g in pull(upstream)])
    expected = np.concatenate([g.ravel() for g in backward(*given)])
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("rms norm: agrees with NumPy")


if __name__ == "__main__":
    main()
