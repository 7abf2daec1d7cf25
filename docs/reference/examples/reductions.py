"""Reductions of tiles, and over the threads of a warp."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def reduce_sum():
    """`T.reduce_sum` adds up rows or columns; `T.reduce_abssum` the absolute values."""

    @tile.jit
    def sums(A: T.Tensor((8, 16), "int32")):
        B = T.empty((8,), "int32")
        C = T.empty((16,), "int32")
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((8, 16), "int32")
            rows = T.alloc_fragment((8,), "int32")
            columns = T.alloc_fragment((16,), "int32")
            T.copy(A, a)
            T.reduce_sum(a, rows)  # along the last dimension
            T.reduce_abssum(a, columns, dim=0)
            T.copy(rows, B)
            T.copy(columns, C)
        return B, C

    a = np.arange(-64, 64, dtype="int32").reshape(8, 16)
    rows, columns = sums(a)
    assert (rows == a.sum(1)).all()
    assert (columns == abs(a).sum(0)).all()


def reduce_max():
    """`T.reduce_max`, `T.reduce_min` and `T.reduce_absmax`; ``clear=False`` goes on."""

    @tile.jit
    def extremes(A: T.Tensor((8, 16), "int32")):
        B = T.empty((3, 8), "int32")
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8, 16), "int32")
            most = T.alloc_fragment((8,), "int32")
            least = T.alloc_fragment((8,), "int32")
            widest = T.alloc_fragment((8,), "int32")
            T.copy(A, a)
            T.fill(most, 50)
            T.reduce_max(a, most, clear=False)  # of 50 and the row
            T.reduce_min(a, least)
            T.reduce_absmax(a, widest)
            T.copy(most, B[0, :])
            T.copy(least, B[1, :])
            T.copy(widest, B[2, :])
        return B

    a = np.random.default_rng(0).integers(-99, 99, (8, 16)).astype("int32")
    assert (extremes(a) == [a.max(1, initial=50), a.min(1), abs(a).max(1)]).all()


def reduce_bitor():
    """`T.reduce_bitand`, `T.reduce_bitor` and `T.reduce_bitxor` combine flags of integers."""

    @tile.jit
    def flags(A: T.Tensor((8, 16), "int32")):
        B = T.empty((3, 8), "int32")
        with T.Kernel(1, threads=32):
            in_all = T.alloc_fragment((8,), "int32")
            in_any = T.alloc_fragment((8,), "int32")
            in_odd = T.alloc_fragment((8,), "int32")
            T.reduce_bitand(A, in_all)
            T.reduce_bitor(A, in_any)
            T.reduce_bitxor(A, in_odd)
            T.copy(in_all, B[0, :])
            T.copy(in_any, B[1, :])
            T.copy(in_odd, B[2, :])
        return B

    a = np.random.default_rng(0).integers(0, 256, (8, 16)).astype("int32") | 4
    kinds = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    assert (flags(a) == [kind.reduce(a, 1) for kind in kinds]).all()


def reduce():
    """`T.reduce` takes the kind as a word, which a factory can be given."""

    @tile.jit(out_idx=[-1])
    def reduced(kind):
        @T.prim_func
        def main(A: T.Tensor((4, 32), "int32"), B: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=32):
                result = T.alloc_fragment((4,), "int32")
                T.reduce(A, result, kind, dim=1)
                T.copy(result, B)

        return main

    a = np.arange(128, dtype="int32").reshape(4, 32)
    assert (reduced("sum")(a) == a.sum(1)).all()
    assert (reduced("min")(a) == a.min(1)).all()


def any_of():
    """`T.any_of` and `T.all_of` decide for a whole tile, as here which tiles are skipped."""

    @tile.jit
    def kinds(A: T.Tensor((3, 64), "int32")):
        B = T.empty((3,), "int32")
        with T.Kernel(3, threads=32) as bx:
            kind = T.alloc_var("int32", init=0)
            if T.all_of(A[bx, :]):
                kind = 2
            else:
                if T.any_of(A[bx, :]):
                    kind = 1
            B[bx] = kind
        return B

    a = np.zeros((3, 64), "int32")
    a[1, 5] = 7
    a[2, :] = 1
    assert kinds(a).tolist() == [0, 1, 2]


def warp_reduce():
    """`T.warp_reduce_sum`, `T.warp_reduce_max`, `T.warp_reduce_min`: over 32 threads, for all."""

    @tile.jit
    def spread(A: T.Tensor((2, 32), "int32")):
        B = T.empty((2, 32), "int32")
        with T.Kernel(1, threads=64):
            lane, warp = T.get_lane_idx(), T.get_warp_idx()
            value = A[warp, lane]
            width = T.warp_reduce_max(value) - T.warp_reduce_min(value)
            B[warp, lane] = (32 * value - T.warp_reduce_sum(value)) // width
        return B

    a = np.random.default_rng(0).integers(0, 1000, (2, 32)).astype("int32")
    width = a.max(1, keepdims=True) - a.min(1, keepdims=True)
    assert (spread(a) == (32 * a - a.sum(1, keepdims=True)) // width).all()


def warp_reduce_bits():
    """`T.warp_reduce_bitand` and `T.warp_reduce_bitor`: flags of all threads, and of any."""

    @tile.jit
    def flags(A: T.Tensor((32,), "int32")):
        B = T.empty((2,), "int32")
        with T.Kernel(1, threads=32):
            value = A[T.get_lane_idx()]
            B[0] = T.warp_reduce_bitand(value)
            B[1] = T.warp_reduce_bitor(value)
        return B

    a = np.random.default_rng(0).integers(0, 256, 32).astype("int32") | 4
    kinds = (np.bitwise_and, np.bitwise_or)
    assert flags(a).tolist() == [kind.reduce(a) for kind in kinds]
