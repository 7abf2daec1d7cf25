"""Packed attention.

Sequences of different lengths stand one behind the other, `cu_seqlens` says where each begins: a
query sees the keys of its own sequence up to its own position. Heads of queries share keys.
"""

import numpy as np

import tile_api as tile


@tile.function
def attention(q, k, v, cu_seqlens):
    """Return (tokens, heads, d): q (tokens, heads, d), k and v (tokens, kv_heads, d)."""
    return tile.nn.attention_varlen(q, k, v, cu_seqlens, cu_seqlens, causal=True)


def arguments(random):
    """Return arguments of a small case: sequences of 20, 1, 0 and 43 tokens."""
    q = random.standard_normal((64, 4, 16), np.float32)
    k, v = random.standard_normal((2, 64, 2, 16), np.float32)
    return q, k, v, np.array([0, 20, 21, 21, 64], np.int32)


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = attention(*given)
    expected = attention.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("packed attention: agrees with NumPy")


if __name__ == "__main__":
    main()
