"""Launches, and what their bodies can ask."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def Kernel():
    """`T.Kernel` runs its body for each block of a grid, whose extents shapes may give."""

    @tile.jit
    def scaled(A, factor: T.float32, block: int = 64):
        M, N = T.const("M, N")
        A: T.Tensor((M, N), "float32")
        B = T.empty((M, N), "float32")
        with T.Kernel(T.ceildiv(N, block), M, threads=block) as (bx, by):
            for i in T.Parallel(block):
                B[by, bx * block + i] = A[by, bx * block + i] * factor
        return B

    a = np.arange(300, dtype="float32").reshape(3, 100)
    assert (scaled(a, 2.0) == a * 2).all()
    assert (scaled(a, 0.5, block=32) == a / 2).all()


def get_thread_binding():
    """`T.get_thread_binding` and `T.get_block_binding`: who am I; the extents: out of how many.

    `T.get_thread_extent` and `T.get_block_extent` are known at compile time.
    """

    @tile.jit
    def numbered():
        B = T.empty((8 * 64,), "int32")
        with T.Kernel(8, threads=64):
            block, thread = T.get_block_binding(), T.get_thread_binding()
            B[block * T.get_thread_extent() + thread] = T.get_block_extent() - block
        return B

    assert (numbered().reshape(8, 64) == 8 - np.arange(8)[:, None]).all()


def get_thread_bindings():
    """`T.get_thread_bindings`, `T.get_thread_extents`, `T.get_block_bindings`: all axes at once.

    So does `T.get_block_extents`, for the grid.
    """

    @tile.jit
    def places():
        B = T.empty((4, 6, 8, 16), "int32")
        with T.Kernel(6, 4, threads=(16, 8)):
            bx, by = T.get_block_bindings()
            tx, ty, _ = T.get_thread_bindings()
            columns, rows, _ = T.get_thread_extents()
            blocks, _ = T.get_block_extents()
            B[by, bx, ty, tx] = (by * rows + ty) * blocks * columns + bx * columns + tx
        return B

    expected = np.arange(4 * 8 * 6 * 16).reshape(4, 8, 6, 16).transpose(0, 2, 1, 3)
    assert (places() == expected).all()


def KernelLaunchFrame():
    """`T.KernelLaunchFrame` is what a macro asks about the launch around it."""

    @T.macro
    def increment(A):
        launch = T.KernelLaunchFrame.Current()
        per_block = launch.get_num_threads()
        A[launch.get_block_binding() * per_block + launch.get_thread_binding()] += 1

    @T.prim_func
    def main(A: T.Tensor((128,), "int32")):
        with T.Kernel(4, threads=32):
            increment(A)

    a = np.arange(128, dtype="int32")
    tile.compile(main)(a)
    assert (a == np.arange(1, 129)).all()


def ClusterKernel():
    """`T.ClusterKernel` groups blocks, which then reach each other's shared memory.

    Runs on: interpret, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def exchanged(A: T.Tensor((4, 32), "int32")):
        B = T.empty((4, 32), "int32")
        with T.ClusterKernel(4, cluster_dims=2, threads=32) as bx:
            mine = T.alloc_shared((32,), "int32")
            other = T.alloc_shared((32,), "int32")
            T.copy(A[bx, :], mine)
            T.cluster_sync()
            T.copy_cluster(mine, other, dst_block=1 - T.block_rank_in_cluster())
            T.cluster_sync()
            T.copy(other, B[bx, :])
        return B

    a = np.arange(128, dtype="int32").reshape(4, 32)
    assert (exchanged(a) == a[[1, 0, 3, 2]]).all()
