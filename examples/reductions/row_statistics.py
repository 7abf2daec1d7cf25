"""Every kind of reduction, along rows and along columns, on one int32 matrix.

X (M, N) int32; rows (7, M) and columns (7, N): sum, largest, smallest, largest magnitude, and
the bits of all numbers combined with and, or, exclusive or.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(8, 32), (20, 50)]


@tilelang.jit(out_idx=[1])
def statistics(M, N, dim):
    """Reduce one dimension with all operations; the reduced row leaves through shared memory."""
    length = N if dim == 0 else M

    @T.prim_func
    def main(X: T.Tensor((M, N), "int32"), Y: T.Tensor((7, length), "int32")):
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_fragment((M, N), "int32")
            result = T.alloc_fragment((length,), "int32")
            staged = T.alloc_shared((7, length), "int32")
            T.copy(X, x)
            T.reduce_sum(x, result, dim=dim)
            T.copy(result, staged[0, :])
            T.reduce_max(x, result, dim=dim)
            T.copy(result, staged[1, :])
            T.reduce_min(x, result, dim=dim)
            T.copy(result, staged[2, :])
            T.reduce_absmax(x, result, dim=dim)
            T.copy(result, staged[3, :])
            T.reduce_bitand(x, result, dim=dim)
            T.copy(result, staged[4, :])
            T.reduce_bitor(x, result, dim=dim)
            T.copy(result, staged[5, :])
            T.reduce_bitxor(x, result, dim=dim)
            T.copy(result, staged[6, :])
            T.copy(staged, Y)

    return main


def check(M, N):
    """Compare both directions with NumPy."""
    x = np.random.default_rng(0).integers(-1000, 1000, (M, N)).astype("int32")
    for dim in (0, 1):
        expected = [
            x.sum(dim),
            x.max(dim),
            x.min(dim),
            np.abs(x).max(dim),
            np.bitwise_and.reduce(x, dim),
            np.bitwise_or.reduce(x, dim),
            np.bitwise_xor.reduce(x, dim),
        ]
        np.testing.assert_array_equal(statistics(M, N, dim)(x), np.stack(expected))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"seven reductions along both dimensions: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
