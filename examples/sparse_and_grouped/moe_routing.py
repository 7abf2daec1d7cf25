"""Routing for a mixture of experts: sort tokens by expert, without a sort.

experts (tokens, k) int32. A first launch counts tokens per expert, a second makes offsets, a
third gives every token its place: a histogram, a scan, and atomic counters. `source` says which
token stands at a place; the order within an expert depends on the machine.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 2, 8), (300, 3, 13)]


@tilelang.jit
def route(tokens, k, experts, threads=128):
    """Fill counts, offsets and source; `counts` and `cursor` must be zero before."""
    total = tokens * k

    @T.prim_func
    def main(
        chosen: T.Tensor((tokens, k), "int32"),
        counts: T.Tensor((experts,), "int32"),
        offsets: T.Tensor((experts + 1,), "int32"),
        cursor: T.Tensor((experts,), "int32"),
        source: T.Tensor((total,), "int32"),
    ):
        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            local_counts = T.alloc_shared((experts,), "int32")
            T.clear(local_counts)
            for i in T.Parallel(threads):
                at = bx * threads + i
                if at < total:
                    T.atomic_add(local_counts[chosen[at // k, at % k]], 1)
            T.atomic_add(counts[0:experts], local_counts)

        with T.Kernel(1, threads=threads) as _:
            sums = T.alloc_shared((experts,), "int32")
            T.copy(counts, sums)
            T.cumsum(sums)
            offsets[0] = 0
            for e in T.Parallel(experts):
                offsets[e + 1] = sums[e]

        with T.Kernel(T.ceildiv(total, threads), threads=threads) as bx:
            at = bx * threads + T.get_thread_binding()
            if at < total:
                expert = chosen[at // k, at % k]
                place = T.atomic_add(cursor[expert], 1, return_prev=True)
                source[offsets[expert] + place] = at // k

    return main


def check(tokens, k, experts):
    """Compare counts and offsets with NumPy, and the tokens of each expert as sets."""
    rng = np.random.default_rng(0)
    chosen = np.stack([rng.permutation(experts)[:k] for _ in range(tokens)]).astype("int32")
    counts, cursor = np.zeros(experts, "int32"), np.zeros(experts, "int32")
    offsets, source = np.full(experts + 1, -1, "int32"), np.full(tokens * k, -1, "int32")
    route(tokens, k, experts)(chosen, counts, offsets, cursor, source)
    np.testing.assert_array_equal(counts, np.bincount(chosen.ravel(), minlength=experts))
    np.testing.assert_array_equal(offsets, np.concatenate([[0], counts.cumsum()]))
    for expert in range(experts):
        found = np.sort(source[offsets[expert] : offsets[expert + 1]])
        np.testing.assert_array_equal(found, np.nonzero(chosen == expert)[0])


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"routing tokens to experts: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
