"""Kernels of several ranks, each with its own tensors."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def signal():
    """`T.signal` raises a flag of another rank, `T.wait_signal` waits for an own one.

    They are of a `T.Signals`, as tensors that each rank has are `T.Symmetric`; `T.rank` is this
    rank, `T.ranks` how many there are.

    Runs on: interpret, cuda:sm_80, hip:gfx942.
    """

    @T.prim_func
    def passed_on(
        A: T.Tensor((32,), "int32"),
        B: T.Tensor((32,), "int32"),
        box: T.Symmetric((32,), "int32"),
        flags: T.Signals((1,)),
    ):
        with T.Kernel(1, threads=32):
            following = (T.rank() + 1) % T.ranks()
            T.copy(A, box.at(following))
            T.signal(flags.at(following)[0])
            T.wait_signal(flags[0])
            T.copy(box, B)

    a = np.arange(96, dtype="int32").reshape(3, 32)  # what three ranks have
    b, box = np.zeros_like(a), np.zeros_like(a)
    tile.compile(tile.ranks_as_blocks(passed_on))(a, b, box)
    assert (b == a[[2, 0, 1]]).all()


def barrier_ranks():
    """`T.barrier_ranks` waits for all ranks: what they stored can be read then.

    Runs on: interpret, cuda:sm_80, hip:gfx942.
    """

    @T.prim_func
    def summed(A: T.Symmetric((32,), "int32"), B: T.Tensor((32,), "int32"), F: T.Signals((1,))):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                A[i] += T.rank()
            T.barrier_ranks(F)
            for i in T.Parallel(32):
                total = T.alloc_var("int32", init=0)
                for p in T.serial(T.ranks()):
                    total += A.at(p)[i]
                B[i] = total

    a = np.arange(96, dtype="int32").reshape(3, 32)
    b = np.zeros_like(a)
    expected = a.sum(0) + 3
    tile.compile(tile.ranks_as_blocks(summed))(a, b)
    assert (b == expected).all()
