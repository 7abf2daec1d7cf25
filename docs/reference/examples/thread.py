"""Programs of threads: barriers, exchanges within a warp, who am I."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def sync_threads():
    """`T.sync_threads` lets threads read what others wrote; `T.tvm_storage_sync` is TVM's word."""

    @tile.jit
    def running_sums(A: T.Tensor((64,), "int32")):
        B = T.empty((64,), "int32")
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            sums = T.alloc_shared((64,), "int32")
            sums[tx] = A[tx]
            T.sync_threads()
            for k in T.serial(6):
                before = T.alloc_var("int32", init=0)
                if tx >= 1 << k:
                    before = sums[tx - (1 << k)]
                T.tvm_storage_sync("shared")
                sums[tx] += before
                T.sync_threads()
            B[tx] = sums[tx]
        return B

    a = np.arange(64, dtype="int32")
    assert (running_sums(a) == a.cumsum()).all()


def sync_warp():
    """`T.sync_warp` is a barrier of 32 threads; who they are, `T.get_warp_idx` tells.

    `T.get_lane_idx` is the place in it, `T.get_warp_group_idx` the number of four warps;
    `T.get_warp_idx_sync` is one number for all lanes.
    """

    @tile.jit
    def rotated_in_warps(A: T.Tensor((256,), "int32")):
        B = T.empty((256,), "int32")
        with T.Kernel(1, threads=256):
            lane, warp, group = T.get_lane_idx(), T.get_warp_idx(), T.get_warp_group_idx()
            rows = T.alloc_shared((8, 32), "int32")
            rows[warp, lane] = A[warp * 32 + lane]
            T.sync_warp()
            B[T.get_warp_idx_sync() * 32 + lane] = rows[warp, (lane + 1) % 32] + 1000 * group
        return B

    a = np.arange(256, dtype="int32")
    expected = np.roll(a.reshape(8, 32), -1, 1).ravel() + a // 128 * 1000
    assert (rotated_in_warps(a) == expected).all()


def sync_grid():
    """`T.sync_grid` lets blocks read what other blocks wrote."""

    @tile.jit
    def centred(A: T.Tensor((4, 64), "float32")):
        B = T.empty((4, 64), "float32")
        with T.Kernel(4, threads=64) as bx:
            sums = T.alloc_global((4,), "float32")
            row = T.alloc_fragment((64,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, :], row)
            T.reduce_sum(row, total)
            T.copy(total, sums[bx])
            T.sync_grid()
            for i in T.Parallel(64):
                B[bx, i] = row[i] - (sums[0] + sums[1] + sums[2] + sums[3]) / 256
        return B

    a = np.arange(256, dtype="float32").reshape(4, 64)
    assert (centred(a) == a - a.mean()).all()


def shfl_xor():
    """Values of other lanes: `T.shfl_xor`, `T.shfl_sync`, `T.shfl_up`, `T.shfl_down`."""

    @tile.jit
    def exchanged(A: T.Tensor((32,), "int32")):
        B = T.empty((4, 32), "int32")
        with T.Kernel(1, threads=32):
            lane = T.get_lane_idx()
            total = T.alloc_var("int32", init=A[lane])
            for k in T.unroll(5):
                total += T.shfl_xor(total, 1 << k)  # the sum, in every lane
            B[0, lane] = total
            B[1, lane] = T.shfl_sync(A[lane], 31 - lane)
            B[2, lane] = A[lane] - T.shfl_up(A[lane], 1)
            B[3, lane] = T.shfl_down(A[lane], 4, width=8)  # within groups of eight
        return B

    a = np.random.default_rng(0).integers(0, 100, 32).astype("int32")
    eights = a.reshape(4, 8)
    down = np.concatenate([eights[:, 4:], eights[:, 4:]], 1).ravel()
    expected = [np.full(32, a.sum()), a[::-1], np.diff(a, prepend=a[0]), down]
    assert (exchanged(a) == expected).all()


def tvm_warp_shuffle():
    """TVM's words: `T.tvm_warp_shuffle`, `T.tvm_warp_shuffle_up`, `T.tvm_warp_shuffle_down`.

    The mask is that of `T.tvm_warp_activemask`.
    """

    @tile.jit
    def exchanged(A: T.Tensor((32,), "int32")):
        B = T.empty((3, 32), "int32")
        with T.Kernel(1, threads=32):
            lane, mask = T.get_lane_idx(), T.tvm_warp_activemask()
            B[0, lane] = T.tvm_warp_shuffle(mask, A[lane], 0, 32, 32)
            B[1, lane] = T.tvm_warp_shuffle_up(mask, A[lane], 1, 32, 32)
            B[2, lane] = T.tvm_warp_shuffle_down(mask, A[lane], 1, 32, 32)
        return B

    a = np.arange(32, dtype="int32") ** 2
    expected = [np.zeros(32), [0, *a[:-1]], [*a[1:], a[31]]]
    assert (exchanged(a) == expected).all()


def ballot_sync():
    """Votes of a warp: `T.ballot_sync`, also `T.ballot`, `T.any_sync`, `T.all_sync`."""

    @tile.jit
    def packed(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        flags = T.empty((3,), "int32")
        with T.Kernel(1, threads=32):
            lane = T.get_lane_idx()
            keep = A[lane] > 0
            votes = T.ballot_sync(keep)
            below = (T.uint32(1) << T.cast(lane, "uint32")) - 1
            B[lane] = T.if_then_else(keep, T.popcount(votes & below), -1)  # its place among these
            flags[0] = T.popcount(T.ballot(keep))
            flags[1] = T.any_sync(A[lane] == 7)
            flags[2] = T.all_sync(A[lane] < 7)
        return B, flags

    a = np.arange(32, dtype="int32") * 5 % 9 - 4
    places, flags = packed(a)
    assert (places == np.where(a > 0, (a > 0).cumsum() - 1, -1)).all()
    assert flags.tolist() == [(a > 0).sum(), 0, 1]


def match_any_sync():
    """`T.match_any_sync` finds lanes with equal values, `T.match_all_sync` whether all are.

    `T.activemask` has the lanes that run this.
    """

    @tile.jit
    def counted(A: T.Tensor((32,), "int32")):
        B = T.empty((3, 32), "int32")
        with T.Kernel(1, threads=32):
            lane = T.get_lane_idx()
            B[0, lane] = T.popcount(T.match_any_sync(A[lane]))  # how many have what I have
            B[1, lane] = T.match_all_sync(A[lane]) != 0
            B[2, lane] = T.popcount(T.activemask())
        return B

    a = np.arange(32, dtype="int32") ** 2 % 5
    assert (counted(a) == [np.bincount(a)[a], np.zeros(32), np.full(32, 32)]).all()


def syncthreads_count():
    """Votes of a block: `T.syncthreads_count`, `T.syncthreads_and`, `T.syncthreads_or`."""

    @tile.jit
    def voted(A: T.Tensor((2, 64), "int32")):
        B = T.empty((2, 3), "int32")
        with T.Kernel(2, threads=64) as bx:
            value = A[bx, T.get_thread_binding()]
            B[bx, 0] = T.syncthreads_count(value > 40)
            B[bx, 1] = T.syncthreads_and(value < 64)
            B[bx, 2] = T.syncthreads_or(value == 63)
        return B

    a = np.arange(128, dtype="int32").reshape(2, 64)
    assert voted(a).tolist() == [[23, 1, 1], [64, 0, 0]]


def thread_return():
    """`T.thread_return` leaves the kernel, in the threads that get there."""

    @tile.jit
    def copied(A: T.Tensor((50,), "int32")):
        B = T.empty((50,), "int32")
        with T.Kernel(2, threads=32) as bx:
            i = bx * 32 + T.get_thread_binding()
            if i >= 50:
                T.thread_return()
            B[i] = A[i] + 1
        return B

    a = np.arange(50, dtype="int32")
    assert (copied(a) == a + 1).all()


def shuffle_elect():
    """`T.shuffle_elect` chooses one thread, here one of each 32."""

    @tile.jit
    def counted():
        B = T.empty((1,), "int32")
        with T.Kernel(1, threads=128):
            count = T.alloc_shared((1,), "int32")
            T.clear(count)
            if T.shuffle_elect(32):
                T.atomic_add(count[0], 1)
            T.copy(count, B)
        return B

    assert counted()[0] == 4


def named_barrier_arrive():
    """`T.named_barrier_arrive` hands over and goes on; who waits, waits at `T.sync_threads`."""

    @tile.jit
    def handed_over(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=64):
            lane = T.get_lane_idx()
            box = T.alloc_shared((32,), "int32")
            if T.get_warp_idx() == 0:
                box[lane] = A[lane] * 2
                T.named_barrier_arrive(1, 64)
            else:
                T.sync_threads(1, 64)  # barrier 1, at which 64 threads arrive
                B[lane] = box[31 - lane]
        return B

    a = np.arange(32, dtype="int32")
    assert (handed_over(a) == a[::-1] * 2).all()
