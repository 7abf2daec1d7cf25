"""Embedding: out[t] = table[ids[t]], and its gradient, which adds rows up atomically.

table and d_table (words, dim), ids (tokens,) int64, out and d_out (tokens, dim); float32. An
id outside the table gives zeros, and no gradient.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(16, 10, 64), (75, 30, 100)]


@tilelang.jit(out_idx=[-1])
def embedding(words, dim, block=8):
    """Gather rows of the table."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def main(
        table: T.Tensor((words, dim), "float32"),
        ids: T.Tensor((tokens,), "int64"),
        out: T.Tensor((tokens, dim), "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block), threads=128) as bx:
            for i, j in T.Parallel(block, dim):
                out[bx * block + i, j] = table[ids[bx * block + i], j]

    return main


@tilelang.jit
def embedding_backward(words, dim, block=8):
    """Scatter gradients; d_table must be zero before."""
    tokens = T.dynamic("tokens")

    @T.prim_func
    def main(
        d_out: T.Tensor((tokens, dim), "float32"),
        ids: T.Tensor((tokens,), "int64"),
        d_table: T.Tensor((words, dim), "float32"),
    ):
        with T.Kernel(T.ceildiv(tokens, block), threads=128) as bx:
            for i, j in T.Parallel(block, dim):
                if bx * block + i < tokens:
                    T.atomic_add(d_table[ids[bx * block + i], j], d_out[bx * block + i, j])

    return main


def check(tokens, words, dim):
    """Compare both directions with NumPy."""
    rng = np.random.default_rng(0)
    table = rng.integers(-9, 10, (words, dim)).astype("float32")
    ids = rng.integers(-1, words + 1, tokens)
    inside = (ids >= 0) & (ids < words)
    expected = np.where(inside[:, None], table[np.clip(ids, 0, words - 1)], 0)
    np.testing.assert_array_equal(embedding(words, dim)(table, ids), expected)
    d_out = rng.integers(-9, 10, (tokens, dim)).astype("float32")
    d_table, gradient = np.zeros_like(table), np.zeros_like(table)
    embedding_backward(words, dim)(d_out, ids, d_table)
    np.add.at(gradient, ids[inside], d_out[inside])
    np.testing.assert_array_equal(d_table, gradient)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"embedding, forward and backward: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
