"""Sample tokens.

A token of each row of logits: the largest by top-k, of these the likeliest by top-p (nucleus), and
a number of each row says which one is drawn. Equal arguments give equal tokens.
"""

import numpy as np

import tile_api as tile


@tile.function
def sample(logits, numbers, k=20, p=0.9):
    """Return (batch,) tokens: logits (batch, vocabulary), numbers (batch,) from 0 to 1."""
    falling = np.sort(logits, axis=-1)[:, ::-1][:, :k]
    e = np.exp(falling - falling[:, :1])
    share = np.cumsum(e, axis=-1)
    least = np.where(share - e < p * share[:, -1:], falling, np.inf).min(axis=-1, keepdims=True)
    weights = np.where(logits >= least, np.exp(logits - falling[:, :1]), 0)
    running = np.cumsum(weights, axis=-1)
    return (running <= numbers[:, None] * running[:, -1:]).sum(axis=-1)


def arguments(random):
    """Return arguments of a small case."""
    return 2 * random.standard_normal((6, 300), np.float32), random.random(6, np.float32)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = sample(*given)
    expected = sample.func(*given)
    np.testing.assert_array_equal(got, expected)
    print("sample tokens: agrees with NumPy")


if __name__ == "__main__":
    main()
