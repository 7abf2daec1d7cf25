"""Attention with ALiBi and a window.

Scores have a bias that grows with distance, another for each head, and queries see the last
keys only. The kernel is flash attention: no matrix of scores is written, and blocks that nobody
sees are left out.
"""

import numpy as np

import tile_api as tile


@tile.function
def attention(q, k, v, slope, window=50):
    """Return softmax(q @ k.T / sqrt(d) + slope * distance) @ v, of (batch, heads, rows, d)."""
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(q.shape[-1]))
    s = s + slope[:, None, None] * (j - i).astype("float32")
    s = np.where((i >= j) & (i - j < window), s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def arguments(random):
    """Return arguments of a small case."""
    q, k, v = random.standard_normal((3, 1, 2, 128, 32), np.float32)
    return q, k, v, np.array([0.5, 0.25], np.float32)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = attention(*given)
    expected = attention.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("attention alibi window: agrees with NumPy")


if __name__ == "__main__":
    main()
