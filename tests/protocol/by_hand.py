"""Programs that schedule Hopper by hand, in clusters of two, each with at most one mistake."""

from __future__ import annotations

from typing import Any

import tile_api.language as T


def shared_factor(mistake: str = "", rounds: int = 4, stages: int = 2) -> Any:
    """Return a product whose blocks stand one below the other: one fetches B for both.

    `mistake` is what it does wrong, see `test_by_hand.PRODUCTS`.
    """
    count = {"half of the arrivals": 128, "too many arrivals": 257}.get(mistake, 256)
    nbytes = {"too few bytes": 8192, "too many bytes": 16400}.get(mistake, 16384)
    flips = int(mistake == "wrong parity")

    @T.prim_func
    def kernel(
        A: T.Tensor((256, 64 * rounds), "float16"),
        B: T.Tensor((64 * rounds, 128), "float16"),
        C: T.Tensor((256, 128), "float32"),
    ):
        with T.ClusterKernel(2, cluster_dims=2, threads=256) as by:
            A_s = T.alloc_shared((stages, 128, 64), "float16")
            B_s = T.alloc_shared((stages, 64, 128), "float16")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_cluster_barrier([count] * stages)
            tx = T.get_thread_binding()
            with T.ws(1):
                for k in T.serial(rounds):
                    slot, turn = k % stages, k // stages % 2
                    if mistake != "free places are not waited for":
                        T.mbarrier_wait_parity(empty[slot], turn ^ 1)
                    T.tma_copy(A[by * 128, k * 64], A_s[slot, :, :], barrier=full[slot])
                    if mistake != "the second block expects nothing" or by % 2 == 0:
                        T.tma_copy(
                            B[k * 64, 0], B_s[slot, :, :], barrier=full[slot], cluster_mask=0b11
                        )
                    if tx == 128 and nbytes != 16384:
                        T.mbarrier_expect_tx(full[slot], nbytes)
                    T.mbarrier_arrive(full[slot])
            with T.ws(0):
                C_l = T.alloc_fragment((128, 128), "float32")
                T.clear(C_l)
                for k in T.serial(rounds):
                    slot, turn = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(full[slot], turn ^ flips)
                    if mistake == "given back before it is read":
                        T.mbarrier_arrive(empty[slot], 0)
                        T.mbarrier_arrive(empty[slot], 1)
                    T.wgmma_gemm(A_s[slot, :, :], B_s[slot, :, :], C_l)
                    if mistake != "given back while it is read":
                        T.wait_wgmma(0)
                    if mistake == "own block only":
                        T.mbarrier_arrive(empty[slot])
                    elif mistake != "given back before it is read":
                        T.mbarrier_arrive(empty[slot], 0)
                        T.mbarrier_arrive(empty[slot], 1)
                T.wait_wgmma(0)
                T.copy(C_l, C[by * 128, 0])

    return kernel


def passed_on(mistake: str = "", rounds: int = 3) -> Any:
    """Return tiles that the engine hands from the first block of a pair to the second.

    `mistake` is what it does wrong, see `test_by_hand.TILES`.
    """
    nbytes = 4096 if mistake == "too few bytes" else 8192

    @T.prim_func
    def kernel(A: T.Tensor((rounds, 64, 64), "float16"), C: T.Tensor((rounds, 64, 64), "float16")):
        with T.ClusterKernel(2, cluster_dims=2, threads=128) as bx:
            mine = T.alloc_shared((64, 64), "float16")
            theirs = T.alloc_shared((64, 64), "float16")
            came = T.alloc_cluster_barrier(128)
            read = T.alloc_cluster_barrier(128)
            tx = T.get_thread_binding()
            for k in T.serial(rounds):
                if bx == 0:
                    T.copy(A[k, :, :], mine)
                    T.mbarrier_wait_parity(read, k % 2 ^ 1)
                    T.copy_cluster(mine, theirs, dst_block=1, remote_barrier=came)
                    if mistake != "source is written while it is copied":
                        T.mbarrier_wait_parity(read, k % 2)
                else:
                    if tx == 0:
                        T.mbarrier_expect_tx(came, nbytes)
                    T.mbarrier_arrive(came)
                    T.mbarrier_wait_parity(came, k % 2)
                    T.copy(theirs, C[k, :, :])
                    if mistake == "nobody is told":
                        T.mbarrier_arrive(read)
                    else:
                        T.mbarrier_arrive(read, 0)

    return kernel


def exchanged(mistake: str = "") -> Any:
    """Return sums of a pair of blocks, which write them to each other by their threads.

    `mistake` is what it does wrong, see `test_by_hand.SUMS`.
    """

    @T.prim_func
    def kernel(A: T.Tensor((2, 128), "float32"), C: T.Tensor((2, 128), "float32")):
        with T.ClusterKernel(2, cluster_dims=2, threads=128) as bx:
            mine = T.alloc_shared((128,), "float32")
            theirs = T.alloc_shared((2, 128), "float32")
            rank = T.block_rank_in_cluster()
            T.copy(A[bx, :], mine)
            if mistake != "written before the block begins":
                T.cluster_sync()
            for there in T.serial(2):
                T.copy_cluster(mine, theirs[rank, :], dst_block=there)
            if mistake == "read before it came":
                T.cluster_arrive()
            elif mistake == "told without the data":
                T.cluster_arrive_relaxed()
                T.cluster_wait()
            else:
                T.cluster_sync()
            for i in T.Parallel(128):
                C[bx, i] = theirs[0, i] + theirs[1, i]
            if mistake == "read before it came":
                T.cluster_wait()

    return kernel
