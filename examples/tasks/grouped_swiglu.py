"""Grouped SwiGLU.

A layer of a mixture of experts: blocks of tokens go to one expert each, whose gate and up
projections are multiplied in registers.
"""

import numpy as np

import tile_api as tile


@tile.function
def grouped_swiglu(x, tokens, expert, gate, up):
    """Return (blocks, rows, f): tokens (blocks, rows), expert (blocks,), gate and up (e, d, f)."""
    rows = x[tokens]
    g = np.einsum("bid,bdf->bif", rows, gate[expert])
    return g / (1 + np.exp(-g)) * np.einsum("bid,bdf->bif", rows, up[expert])


def arguments(random):
    """Return arguments of a small case."""
    x = random.standard_normal((40, 32), np.float32)
    gate, up = random.standard_normal((2, 4, 32, 48), np.float32) / 6
    tokens = random.integers(0, 40, (5, 8), np.int32)
    return x, tokens, np.array([0, 0, 3, 1, 1], np.int32), gate, up


def main():
    """Compare the kernels with what the function means as NumPy."""
    given = arguments(np.random.default_rng(0))
    got = grouped_swiglu(*given)
    expected = grouped_swiglu.func(*given)
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    print("grouped swiglu: agrees with NumPy")


if __name__ == "__main__":
    main()
