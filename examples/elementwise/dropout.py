"""Dropout that draws its mask on the device, the same one for the same seed.

X and Y (N,) float32, mask (N,) uint8; what is kept is divided by the probability of being kept.
Every thread has its own random numbers.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(1000, 0.25), (4096, 0.5)]


@tilelang.jit(out_idx=[2, 3])
def dropout(N, probability, threads=128):
    """Drop each number with a fixed probability; the seed comes at run time."""

    @T.prim_func
    def main(
        X: T.Tensor((N,), "float32"),
        seed: T.int32,
        Y: T.Tensor((N,), "float32"),
        mask: T.Tensor((N,), "uint8"),
    ):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
            tx = T.get_thread_binding()
            at = bx * threads + tx
            T.rng_init(seed, at)
            keep = T.alloc_var("bool")
            keep = T.rng_rand_float() >= probability
            if at < N:
                Y[at] = T.if_then_else(keep, X[at] / (1 - probability), 0)
                mask[at] = T.if_then_else(keep, 1, 0)

    return main


def check(N, probability):
    """Check the result against its own mask, and the mask's statistics."""
    x = np.random.default_rng(0).standard_normal(N).astype("float32")
    kernel = dropout(N, probability)
    y, mask = kernel(x, 42)
    np.testing.assert_allclose(y, np.where(mask == 1, x / (1 - probability), 0), rtol=1e-6)
    deviation = np.sqrt(probability * (1 - probability) / N)
    assert abs(mask.mean() - (1 - probability)) < 5 * deviation
    np.testing.assert_array_equal(kernel(x, 42)[1], mask)
    assert (kernel(x, 43)[1] != mask).any()


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"dropout: {len(SIZES)} sizes follow their masks, and masks their seeds")


if __name__ == "__main__":
    main()
