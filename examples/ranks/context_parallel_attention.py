"""Attention over a sequence that is split among ranks: each has some queries, keys and values.

Q, K, V, O (rows, D) on each rank. No rank ever holds all keys: tiles of the others' are read where
they are, and maximum, sum and result are kept as flash attention keeps them. All ranks go through
the keys in one order, so that the result has the bits that one rank alone gets.
"""

import numpy as np

import tile_api as tile
import tile_api.language as T

SIZES = [(2, 64, 32), (3, 32, 16)]  # ranks, rows, features


@tile.jit
def context_parallel_attention(size, rows, D, keys=None, block=32):
    """Attend to the keys of all ranks; each has as many as queries, or another number."""
    scale = 1.44269504 / D**0.5  # exp2 is what machines have
    keys = keys or rows
    tiles = keys // block

    @T.prim_func
    def main(
        Q: T.Tensor((rows, D), "float32"),
        K: T.Symmetric((keys, D), "float32"),
        V: T.Symmetric((keys, D), "float32"),
        O: T.Tensor((rows, D), "float32"),
    ):
        T.assume(T.ranks() == size)
        with T.Kernel(rows // block) as b:
            q, k = T.alloc_shared((block, D), "float32"), T.alloc_shared((block, D), "float32")
            v, p = T.alloc_shared((block, D), "float32"), T.alloc_shared((block, block), "float32")
            scores = T.alloc_fragment((block, block), "float32")
            result = T.alloc_fragment((block, D), "float32")
            largest = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            sums = T.alloc_fragment((block,), "float32")
            T.copy(Q[b * block, 0], q)
            T.clear(result)
            T.clear(total)
            T.fill(largest, -T.infinity("float32"))
            for step in T.Pipelined(size * tiles, num_stages=2):
                T.copy(K.at(step // tiles)[step % tiles * block, 0], k)
                T.copy(V.at(step // tiles)[step % tiles * block, 0], v)
                T.gemm(q, k, scores, transpose_B=True, clear_accum=True)
                T.copy(largest, before)
                T.reduce_max(scores, largest, dim=1, clear=False)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2(scores[i, j] * scale - largest[i] * scale)
                T.reduce_sum(scores, sums, dim=1)
                for i in T.Parallel(block):
                    total[i] = total[i] * T.exp2((before[i] - largest[i]) * scale) + sums[i]
                for i, j in T.Parallel(block, D):
                    result[i, j] *= T.exp2((before[i] - largest[i]) * scale)
                T.copy(scores, p)
                T.gemm(p, v, result)
            for i, j in T.Parallel(block, D):
                result[i, j] /= total[i]
            T.copy(result, O[b * block, 0])

    return main


def run(ranks, q, k, v):
    """Return what a rank's queries attend to; all are this rank's rows."""
    K, V, o = ranks.zeros(k.shape), ranks.zeros(v.shape), np.full_like(q, np.nan)
    K.local[:], V.local[:] = k, v
    context_parallel_attention(ranks.size, *q.shape)(q, K, V, o)
    return o


def parts(ranks, rows, D):
    """Return the queries, keys and values of each rank."""
    return np.random.default_rng(0).standard_normal((3, ranks, rows, D)).astype("float32")


def check(size, rows, D):
    """Compare the rows of all ranks with those of one rank, bit by bit, and with NumPy."""
    q, k, v = parts(size, rows, D)
    found = tile.ranks.in_threads(
        size, lambda ranks: run(ranks, q[ranks.rank], k[ranks.rank], v[ranks.rank])
    )
    q, k, v = (x.reshape(size * rows, D) for x in (q, k, v))
    (alone,) = tile.ranks.in_threads(1, lambda ranks: run(ranks, q, k, v))
    np.testing.assert_array_equal(np.concatenate(found), alone)
    weights = np.exp((q @ k.T) / D**0.5)
    wanted = weights / weights.sum(1, keepdims=True) @ v
    np.testing.assert_allclose(alone, wanted, rtol=1e-4, atol=1e-5)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"context-parallel attention: {len(SIZES)} sizes agree with one rank")


if __name__ == "__main__":
    main()
