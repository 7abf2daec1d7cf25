"""Paged decode.

One query for each sequence, over keys and values that lie in pages: a table says which page holds
which rows of a sequence, and lengths say how many there are.
"""

import numpy as np

import tile_api as tile


@tile.function
def decode(q, keys, values, table, lengths):
    """Return (batch, d): keys and values (pages, rows, d), table (batch, n), lengths (batch,)."""
    batch, d = q.shape
    k, v = keys[table].reshape(batch, -1, d), values[table].reshape(batch, -1, d)
    s = np.einsum("bd,bnd->bn", q, k) / np.sqrt(np.float32(d))
    s = np.where(np.arange(k.shape[1]) < lengths[:, None], s, -np.inf)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.einsum("bn,bnd->bd", e / e.sum(axis=-1, keepdims=True), v)


def arguments(random):
    """Return arguments of a small case."""
    keys, values = random.standard_normal((2, 12, 16, 32), np.float32)
    table = random.permutation(12).astype("int32").reshape(3, 4)
    q = random.standard_normal((3, 32), np.float32)
    return q, keys, values, table, np.array([64, 17, 40], np.int32)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = decode(*given)
    expected = decode.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("paged decode: agrees with NumPy")


if __name__ == "__main__":
    main()
