"""Barriers in shared memory, copies and products that run by themselves."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def alloc_barrier():
    """`T.alloc_barrier` counts arrivals: `T.mbarrier_arrive`, `T.mbarrier_wait_parity`.

    Also written `T.barrier_arrive` and `T.barrier_wait`; and `T.ptx_arrive_barrier` and
    `T.ptx_wait_barrier`.

    Runs on: interpret, cpu, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def three_rounds(A: T.Tensor((64,), "int32")):
        B = T.empty((64,), "int32")
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            values = T.alloc_shared((64,), "int32")
            met = T.alloc_barrier(64)
            values[tx] = A[tx]
            T.mbarrier_arrive(met)
            T.mbarrier_wait_parity(met, 0)  # phases are numbered 0, 1, 0, …
            other = T.alloc_var("int32", init=values[63 - tx])
            T.barrier_arrive(met)
            T.barrier_wait(met, 1)
            values[tx] += other
            T.ptx_arrive_barrier(met)
            T.ptx_wait_barrier(met, 0)
            B[tx] = values[tx ^ 1]
        return B

    a = np.arange(64, dtype="int32") ** 2
    assert (three_rounds(a) == (a + a[::-1])[np.arange(64) ^ 1]).all()


def tma_store_wait():
    """Copy engines: `T.tma_copy` tells a barrier of its bytes, or is awaited.

    `T.tma_store_wait` waits for what was written, `T.fence_proxy_async` shows engines what
    threads wrote.

    Runs on: interpret, cpu, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def doubled(A: T.Tensor((64, 64), "float32")):
        B = T.empty((64, 64), "float32")
        with T.Kernel(2, threads=128) as by:
            a = T.alloc_shared((32, 64), "float32")
            come = T.alloc_barrier(128)
            T.tma_copy(A[by * 32, 0], a, barrier=come)
            T.mbarrier_arrive(come)
            T.mbarrier_wait_parity(come, 0)
            for i, j in T.Parallel(32, 64):
                a[i, j] *= 2
            T.fence_proxy_async()
            T.sync_threads()
            T.tma_copy(a, B[by * 32, 0])
            T.tma_store_wait()
        return B

    a = np.arange(4096, dtype="float32").reshape(64, 64)
    assert (doubled(a) == 2 * a).all()


def mbarrier_expect_tx():
    """`T.mbarrier_expect_tx` says how many bytes will come: here from another block.

    `T.alloc_cluster_barrier` is a barrier at which threads of the whole cluster arrive,
    `T.ptx_arrive_cluster_barrier` arrives at that of one of its blocks.

    Runs on: interpret, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def handed_on(A: T.Tensor((3, 64), "float32")):
        B = T.empty((3, 64), "float32")
        with T.ClusterKernel(2, cluster_dims=2, threads=64) as bx:
            mine = T.alloc_shared((64,), "float32")
            theirs = T.alloc_shared((64,), "float32")
            came = T.alloc_cluster_barrier(64)
            read = T.alloc_cluster_barrier(64)
            for k in T.serial(3):
                if bx == 0:
                    T.copy(A[k, :], mine)
                    T.mbarrier_wait_parity(read, k % 2 ^ 1)
                    T.copy_cluster(mine, theirs, dst_block=1, remote_barrier=came)
                    T.mbarrier_wait_parity(read, k % 2)
                else:
                    if T.get_thread_binding() == 0:
                        T.mbarrier_expect_tx(came, 64 * 4)
                    T.mbarrier_arrive(came)
                    T.mbarrier_wait_parity(came, k % 2)
                    T.copy(theirs, B[k, :])
                    T.ptx_arrive_cluster_barrier(read, 0)
        return B

    a = np.arange(192, dtype="float32").reshape(3, 64)
    assert (handed_on(a) == a).all()


def mbarrier_arrive_expect_tx():
    """`T.mbarrier_arrive_expect_tx` also arrives; TVM calls it `T.ptx_arrive_barrier_expect_tx`.

    Runs on: interpret, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def handed_on(A: T.Tensor((2, 64), "float32")):
        B = T.empty((2, 64), "float32")
        with T.ClusterKernel(2, cluster_dims=2, threads=64) as bx:
            mine = T.alloc_shared((2, 64), "float32")
            theirs = T.alloc_shared((2, 64), "float32")
            came = T.alloc_cluster_barrier([1, 1])
            if bx == 0:
                T.copy(A, mine)
                T.copy_cluster(mine[0, :], theirs[0, :], dst_block=1, remote_barrier=came[0])
                T.copy_cluster(mine[1, :], theirs[1, :], dst_block=1, remote_barrier=came[1])
            else:
                if T.get_thread_binding() == 0:
                    T.mbarrier_arrive_expect_tx(came[0], 64 * 4)
                    T.ptx_arrive_barrier_expect_tx(came[1], 64 * 4)
                T.mbarrier_wait_parity(came[0], 0)
                T.mbarrier_wait_parity(came[1], 0)
                T.copy(theirs, B)
        return B

    a = np.arange(128, dtype="float32").reshape(2, 64)
    assert (handed_on(a) == a).all()


def tma_store_arrive():
    """`T.tma_store_arrive` closes a group of copies; `T.tma_copy` closes one itself.

    So `T.tma_store_wait` of 1 leaves the empty group in flight, and waits for the copy.

    Runs on: interpret, cpu, cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def filled():
        B = T.empty((2, 64, 64), "float32")
        with T.Kernel(1, threads=128):
            b = T.alloc_shared((64, 64), "float32")
            for k in T.serial(2):
                T.fill(b, k + 1)
                T.fence_proxy_async()
                T.sync_threads()
                T.tma_copy(b, B[k, :, :])
                T.tma_store_arrive()
                T.tma_store_wait(1)  # b may be written again
                T.sync_threads()
        return B

    b = filled()
    assert (b[0] == 1).all()
    assert (b[1] == 2).all()


def warpgroup_wait():
    """Products in flight: `T.warpgroup_arrive`, `T.warpgroup_commit_batch`, `T.warpgroup_wait`.

    `T.warpgroup_fence_operand` names registers that they add to. `T.wgmma_gemm` does all but
    the last by itself.

    Runs on: cuda:sm_90a.
    """

    @tile.jit
    def product(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        C = T.empty((64, 64), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.warpgroup_fence_operand(c)
            T.warpgroup_arrive()
            T.wgmma_gemm(a, b, c)
            T.warpgroup_commit_batch()
            T.warpgroup_wait(0)
            T.copy(c, C)
        return C

    a, b = np.random.default_rng(0).integers(-4, 5, (2, 64, 64)).astype("float16")
    assert (product(a, b) == a.astype("float32") @ b.astype("float32")).all()


def pdl_sync():
    """`T.pdl_trigger` lets the next kernel begin early, which waits by `T.pdl_sync`.

    Runs on: cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def scaled(A: T.Tensor((4, 128), "float32"), factor: T.Tensor((128,), "float32")):
        B = T.empty((4, 128), "float32")
        with T.Kernel(4, threads=128) as bx:
            f = T.alloc_fragment((128,), "float32")
            T.copy(factor, f)  # which no kernel before wrote
            T.pdl_sync()
            for i in T.Parallel(128):
                B[bx, i] = A[bx, i] * f[i]
            T.pdl_trigger()
        return B

    a, factor = np.arange(512, dtype="float32").reshape(4, 128), np.arange(128, dtype="float32")
    assert (scaled(a, factor) == a * factor).all()


def cp_async_barrier_noinc():
    """`T.ptx_cp_async` copies by one thread, `T.cp_async_barrier_noinc` arrives when it is done.

    Runs on: cuda:sm_90a.
    """

    @tile.jit
    def reversed_parts(A: T.Tensor((32, 4), "float32")):
        B = T.empty((32, 4), "float32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            a = T.alloc_shared((32, 4), "float32")
            come = T.alloc_barrier(32)
            T.ptx_cp_async(T.access_ptr(a[tx, 0], "w"), T.access_ptr(A[tx, 0], "r"), 4)
            T.cp_async_barrier_noinc(come)
            T.mbarrier_wait_parity(come, 0)
            for k in T.serial(4):
                B[tx, k] = a[31 - tx, k]
        return B

    a = np.arange(128, dtype="float32").reshape(32, 4)
    assert (reversed_parts(a) == a[::-1]).all()
