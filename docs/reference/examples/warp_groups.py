"""Warp groups that do different things."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def ws():
    """`T.ws` lets a warp group work by itself: one fetches, one computes; barriers order them.

    Runs on: interpret, cpu, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def doubled(A: T.Tensor((6, 256), "float32")):
        B = T.empty((6, 256), "float32")
        with T.Kernel(1, threads=256):
            slots = T.alloc_shared((2, 256), "float32")
            full = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([128, 128])
            with T.ws(0):
                for k in T.serial(6):
                    T.mbarrier_wait_parity(free[k % 2], k // 2 % 2 ^ 1)
                    T.copy(A[k, :], slots[k % 2, :])
                    T.mbarrier_arrive(full[k % 2])
            with T.ws(1):
                for k in T.serial(6):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    for i in T.Parallel(256):
                        B[k, i] = slots[k % 2, i] * 2
                    T.mbarrier_arrive(free[k % 2])
        return B

    a = np.arange(1536, dtype="float32").reshape(6, 256)
    assert (doubled(a) == 2 * a).all()


def WarpSpecialize():
    """`T.WarpSpecialize` is `T.ws` in full; what it returns is a `T.WarpSpecializeFrame`."""

    def producers() -> T.WarpSpecializeFrame:
        return T.WarpSpecialize(0)

    def consumers() -> T.WarpSpecializeFrame:
        return T.ws(1)

    @tile.jit
    def halves(A: T.Tensor((256,), "int32")):
        B = T.empty((256,), "int32")
        with T.Kernel(1, threads=256):
            with producers():
                for i in T.Parallel(128):
                    B[i] = A[i] + 1
            with consumers():
                for i in T.Parallel(128):
                    B[128 + i] = A[128 + i] - 1
        return B

    a = np.zeros(256, "int32")
    assert (halves(a) == np.repeat([1, -1], 128)).all()
