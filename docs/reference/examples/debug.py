"""Looking into kernels, and conditions that must hold."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def print():
    """`T.print` writes tiles, once for a block, and values, from each thread.

    Prints ``sums: sums[0] = 1``.
    """

    @tile.jit
    def sums_of_rows(A: T.Tensor((2, 2), "int32")):
        B = T.empty((2,), "int32")
        with T.Kernel(1, threads=32):
            sums = T.alloc_fragment((2,), "int32")
            T.reduce_sum(A, sums)
            T.print(sums, msg="sums")
            T.copy(sums, B)
        return B

    assert sums_of_rows(np.arange(4, dtype="int32").reshape(2, 2)).tolist() == [1, 5]


def device_assert():
    """`T.device_assert` stops a kernel with its message, `T.Assert` too."""
    from tile_core.errors import DeviceAssertError

    @tile.jit
    def gathered(A: T.Tensor((8,), "int32"), at: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.device_assert(at[tx] >= 0, "an index is negative")
            T.Assert(at[tx] < 8, "an index is too large")
            B[tx] = A[at[tx]]
        return B

    a, at = np.arange(8, dtype="int32"), np.arange(32, dtype="int32") % 8
    assert (gathered(a, at) == a[at]).all()
    try:
        gathered(a, at - 1)
    except DeviceAssertError as error:
        message = str(error)
    assert "an index is negative" in message


def assume():
    """`T.assume` states what compilers may rely on; a call checks what it can."""

    @tile.jit(out_idx=[1])
    def doubled(block):
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
            T.assume(n % block == 0)  # so that no access needs a guard
            with T.Kernel(n // block, threads=block) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * 2

        return main

    a = np.arange(96, dtype="int32")
    assert (doubled(32)(a) == a * 2).all()
