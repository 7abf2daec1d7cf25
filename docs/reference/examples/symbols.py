"""Names for extents."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def const():
    """`T.const` names extents that the arguments fix: each shape has a kernel of its own."""

    @tile.jit
    def sums(A):
        M, N = T.const("M, N", max=1024)
        A: T.Tensor((M, N), "int32")
        B = T.empty((M,), "int32")
        with T.Kernel(M, threads=32) as row:
            total = T.alloc_fragment((1,), "int32")
            a = T.alloc_fragment((N,), "int32")  # N is a number here
            T.copy(A[row, :], a)
            T.reduce_sum(a, total)
            T.copy(total, B[row])
        return B

    for shape in ((2, 32), (3, 40)):
        a = np.arange(shape[0] * shape[1], dtype="int32").reshape(shape)
        assert (sums(a) == a.sum(1)).all()


def dynamic():
    """`T.dynamic` names extents that calls give: one kernel for all that its contract allows."""
    n = T.dynamic("n", min=16, multiple_of=16)

    @T.prim_func
    def doubled(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(n // 16, threads=16) as bx:
            for i in T.Parallel(16):
                B[bx * 16 + i] = A[bx * 16 + i] * 2

    kernel = tile.compile(doubled, out_idx=[-1])
    for size in (16, 160):
        a = np.arange(size, dtype="int32")
        assert (kernel(a) == 2 * a).all()


def symbolic():
    """`T.symbolic` is the old name of T.dynamic, and says so: one kernel for all extents."""
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        n = T.symbolic("n", multiple_of=8)
    assert "use T.dynamic" in str(said[0].message)

    @T.prim_func
    def doubled(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * 2

    kernel = tile.compile(doubled, out_idx=[-1])
    for size in (8, 104):
        a = np.arange(size, dtype="int32")
        assert (kernel(a) == 2 * a).all()
