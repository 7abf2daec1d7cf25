"""Clusters of blocks."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def cluster_sync():
    """`T.cluster_sync` is a barrier of all blocks of a cluster, `T.copy_cluster` reaches another.

    `T.block_rank_in_cluster` tells which one this is.

    Runs on: interpret, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def exchanged(A: T.Tensor((4, 64), "float32")):
        B = T.empty((4, 64), "float32")
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            mine = T.alloc_shared((64,), "float32")
            theirs = T.alloc_shared((64,), "float32")
            T.copy(A[bx, :], mine)
            T.cluster_sync()  # the other block has begun
            T.copy_cluster(mine, theirs, dst_block=T.block_rank_in_cluster() ^ 1)
            T.cluster_sync()
            for i in T.Parallel(64):
                B[bx, i] = mine[i] - theirs[i]
        return B

    a = np.arange(256, dtype="float32").reshape(4, 64) ** 2
    assert (exchanged(a) == a - a[[1, 0, 3, 2]]).all()


def cluster_arrive():
    """`T.cluster_arrive` says that this block is so far, `T.cluster_wait` waits for the others.

    `T.cluster_arrive_relaxed` hands over nothing that was written.

    Runs on: interpret, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def exchanged(A: T.Tensor((2, 64), "float32")):
        B = T.empty((2, 64), "float32")
        with T.ClusterKernel(2, cluster_dims=2, threads=64) as bx:
            mine = T.alloc_shared((64,), "float32")
            theirs = T.alloc_shared((64,), "float32")
            T.cluster_arrive_relaxed()
            T.copy(A[bx, :], mine)  # meanwhile
            T.cluster_wait()
            T.copy_cluster(mine, theirs, dst_block=1 - bx)
            T.cluster_arrive()
            for i in T.Parallel(64):
                B[bx, i] = mine[i] * 2
            T.cluster_wait()
            for i in T.Parallel(64):
                B[bx, i] += theirs[i]
        return B

    a = np.arange(128, dtype="float32").reshape(2, 64)
    assert (exchanged(a) == 2 * a + a[::-1]).all()


def get_cluster_id():
    """Where this cluster is: `T.get_cluster_id`, `T.get_cluster_ids`, `T.get_cluster_dims`.

    How many there are: `T.get_cluster_extent`, `T.get_cluster_extents`; `T.get_cluster_size` is
    how many blocks each has.

    Runs on: interpret, cpu, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def numbered():
        B = T.empty((4, 8), "int32")
        with T.ClusterKernel(8, 4, cluster_dims=(4, 2), threads=32) as (bx, by):
            x, y = T.get_cluster_ids()
            columns, rows, _ = T.get_cluster_dims()
            assert T.get_cluster_extents() == [2, 2]
            B[by, bx] = (y * T.get_cluster_extent(0) + T.get_cluster_id(0)) * T.get_cluster_size()
            B[by, bx] += by % rows * columns + bx - x * columns
        return B

    expected = np.arange(32).reshape(2, 2, 2, 4).transpose(0, 2, 1, 3).reshape(4, 8)
    assert (numbered() == expected).all()


def tma_copy():
    """`T.tma_copy` with ``cluster_mask``: one block fetches what all of them work on.

    Runs on: interpret, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def scaled(A: T.Tensor((64, 64), "float32")):
        B = T.empty((2, 64, 64), "float32")
        with T.ClusterKernel(2, cluster_dims=2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float32")
            come = T.alloc_cluster_barrier(128)
            T.tma_copy(A[0, 0], a, barrier=come, cluster_mask=0b11)
            T.mbarrier_arrive(come)
            T.mbarrier_wait_parity(come, 0)
            for i, j in T.Parallel(64, 64):
                B[bx, i, j] = a[i, j] * (bx + 1)
        return B

    a = np.arange(4096, dtype="float32").reshape(64, 64)
    assert (scaled(a) == [a, 2 * a]).all()
