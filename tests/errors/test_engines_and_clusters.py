"""Copies by engines and clusters of blocks, used wrongly: code, line, reason and way out."""

from __future__ import annotations

import pytest

from support.hopper_mistakes import mistake
from support.mistakes import Mistake

MISTAKES = [
    mistake(
        "a load without a barrier",
        "T.tma_copy(A, S)",
        """
        [TL1002] a bulk copy into shared memory needs a barrier that counts its bytes
         --> program.py:6:9
          |
        6 |         T.tma_copy(A, S)
          |         ^^^^^^^^^^^^^^^^
        hint: write T.tma_copy(A[...], A_shared, barrier=bar)
        """,
    ),
    mistake(
        "a store with a barrier",
        "T.tma_copy(S, C, barrier=full[0])",
        """
        [TL1002] a bulk copy into a tensor completes without a barrier
         --> program.py:6:9
          |
        6 |         T.tma_copy(S, C, barrier=full[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave barrier= out, and wait with T.tma_store_wait()
        """,
    ),
    mistake(
        "a copy that converts",
        """
        F = T.alloc_shared((64, 64), "float32")
        T.tma_copy(A, F, barrier=full[0])
        """,
        """
        [TL2002] a bulk copy does not convert: float16 to float32
         --> program.py:7:9
          |
        7 |         T.tma_copy(A, F, barrier=full[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give both the same element type, or use T.copy
        """,
    ),
    mistake(
        "a copy within the block",
        """
        F = T.alloc_shared((64, 64), "float16")
        T.tma_copy(F, S, barrier=full[0])
        """,
        """
        [TL2005] a bulk copy goes between global and shared memory, not from shared to shared
         --> program.py:7:9
          |
        7 |         T.tma_copy(F, S, barrier=full[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.copy
        """,
    ),
    mistake(
        "a part of a tile",
        "T.tma_copy(A[0:64, 0:4], S[0:64, 0:4], barrier=full[0])",
        """
        [TL4001] 'A' cannot be copied to 'S' in bulk: rows of 4 elements are no multiple of 16 bytes
         --> program.py:6:9
          |
        6 |         T.tma_copy(A[0:64, 0:4], S[0:64, 0:4], barrier=full[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.copy, which finds another way
        """,
    ),
    mistake(
        "a part that begins inside of 128 bytes",
        "T.tma_copy(A[3:8, 8:16], S[3:8, 8:16], barrier=full[0])",
        """
        [TL4001] 'S' cannot be copied in bulk: parts of it begin at no multiples of 128 bytes
         --> program.py:6:9
          |
        6 |         T.tma_copy(A[3:8, 8:16], S[3:8, 8:16], barrier=full[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave its layout open, or use T.copy(..., disable_tma=True)
        """,
    ),
    mistake(
        "an address between 16 bytes",
        """
        P = T.make_tensor(T.address_of(A[1, 4]), (16, 64), "float16")
        T.tma_copy(P, S[0:16, :], barrier=full[0])
        """,
        """
        [TL4001] 'P' cannot be copied to 'S' in bulk: it begins at no known multiple of 16 bytes
         --> program.py:7:9
          |
        7 |         T.tma_copy(P, S[0:16, :], barrier=full[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: the kernel computes the address of 'P'
        hint: use T.copy, which finds another way
        """,
    ),
    mistake(
        "a part of a tile to a tensor",
        """
        T.tma_copy(S[:, 0:4], C[:, 0:4])
        T.tma_store_wait()
        """,
        """
        [TL4001] 'S' cannot be copied to 'C' in bulk: rows of 4 elements are no multiple of 16 bytes
         --> program.py:6:9
          |
        6 |         T.tma_copy(S[:, 0:4], C[:, 0:4])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.copy, which finds another way
        """,
    ),
    mistake(
        "a mask without clusters",
        "T.tma_copy(A, S, barrier=full[0], cluster_mask=3)",
        """
        [TL1002] cluster_mask= is for blocks in clusters, and this launch has none
         --> program.py:6:9
          |
        6 |         T.tma_copy(A, S, barrier=full[0], cluster_mask=3)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.Kernel(..., cluster_dims=2)
        """,
    ),
    mistake(
        "a mask of blocks that are not there",
        "T.tma_copy(A, S, barrier=full[0], cluster_mask=4)",
        """
        [TL1002] cluster_mask=0x4 names block 2 of a cluster of 2 blocks
         --> program.py:6:9
          |
        6 |         T.tma_copy(A, S, barrier=full[0], cluster_mask=4)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use bits 0 to 1: at most 0x3
        """,
        more=", cluster_dims=2",
    ),
    mistake(
        "a policy that is not known",
        'T.tma_copy(A, S, barrier=full[0], eviction_policy="evict_never")',
        """
        [TL1002] eviction policy 'evict_never' is not known
         --> program.py:6:9
          |
        6 |         T.tma_copy(A, S, barrier=full[0], eviction_policy="evict_never")
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of 'evict_normal', 'evict_first', 'evict_last'
        """,
    ),
    mistake(
        "no clusters to wait for",
        "T.cluster_sync()",
        """
        [TL1002] T.cluster_sync is for blocks in clusters, and this launch has none
         --> program.py:6:9
          |
        6 |         T.cluster_sync()
          |         ^^^^^^^^^^^^^^^^
        hint: write T.Kernel(..., cluster_dims=2)
        """,
    ),
    mistake(
        "no block to copy to",
        "T.copy_cluster(S, S)",
        """
        [TL1002] T.copy_cluster must be told to which block it copies
         --> program.py:6:9
          |
        6 |         T.copy_cluster(S, S)
          |         ^^^^^^^^^^^^^^^^^^^^
        hint: write dst_block=rank, the number of a block in the cluster
        """,
        more=", cluster_dims=2",
    ),
    mistake(
        "a block that is not there",
        "T.copy_cluster(S, S, dst_block=2)",
        """
        [TL1002] there is no block 2 in a cluster of 2
         --> program.py:6:9
          |
        6 |         T.copy_cluster(S, S, dst_block=2)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use ranks 0 to 1
        """,
        more=", cluster_dims=2",
    ),
    mistake(
        "a tensor for a tile of another block",
        "T.copy_cluster(A, S, dst_block=1)",
        """
        [TL2005] blocks of a cluster reach each other's shared tiles, and 'A' is in global memory
         --> program.py:6:9
          |
        6 |         T.copy_cluster(A, S, dst_block=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy it into a tile of T.alloc_shared first
        """,
        more=", cluster_dims=2",
    ),
    mistake(
        "a smaller part of a tile of another block",
        "T.copy_cluster(S[0:32, 0:64], S[0:32, 0:32], dst_block=1)",
        """
        [TL2001] [32, 64] of S[64, 64] cannot be copied to [32, 32] of S[64, 64] of another block
         --> program.py:6:9
          |
        6 |         T.copy_cluster(S[0:32, 0:64], S[0:32, 0:32], dst_block=1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass tiles or parts of them, of the same extents: S[k, 0:8, 0:32]
        """,
        more=", cluster_dims=2",
    ),
    mistake(
        "a grid of no whole clusters",
        "T.cluster_sync()",
        """
        [TL1002] a grid of 2 blocks along x is not made of clusters of 3
         --> program.py:3:10
          |
        3 |     with T.Kernel(2, threads=256, cluster_dims=3) as bx:
          |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: round it up: T.ceildiv(size, tile * 3) * 3
        """,
        more=", cluster_dims=3",
    ),
    mistake(
        "a rank beyond the cluster",
        """
        T.cluster_sync()
        T.mbarrier_arrive(full[0], n + 2)
        T.cluster_sync()
        """,
        """
        [TL6508] there is no block 3 in a cluster of 2
         --> program.py:7:9
          |
        7 |         T.mbarrier_arrive(full[0], n + 2)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use ranks 0 to 1
        """,
        target="interpret",
        more=", cluster_dims=2",
    ),
    mistake(
        "a block that does not come",
        """
        if bx == 0:
            T.cluster_sync()
        """,
        """
        [TL6504] block 0 waits for ever: no block of its cluster does what it waits for
         --> program.py:7:13
          |
        7 |             T.cluster_sync()
          |             ^^^^^^^^^^^^^^^^
        note: block 0: 256 threads from 0 on wait here: 256 of 512 threads of the cluster came
         --> program.py:7:13
          |
        7 |             T.cluster_sync()
          |             ^^^^^^^^^^^^^^^^
        hint: every block of the cluster must arrive as often as others wait
        """,
        target="interpret",
        more=", cluster_dims=2",
    ),
    mistake(
        "a raw descriptor",
        "T.initialize_wgmma_descriptor(S)",
        """
        [TL4001] T.initialize_wgmma_descriptor is not offered: the compiler makes descriptors
         --> program.py:6:9
          |
        6 |         T.initialize_wgmma_descriptor(S)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.wgmma_gemm(A, B, C) and T.wait_wgmma(n)
        """,
    ),
    mistake(
        "a raw map of a tensor",
        "T.tma_load(S, A)",
        """
        [TL4001] T.tma_load is not offered: the compiler makes maps of tensors
         --> program.py:6:9
          |
        6 |         T.tma_load(S, A)
          |         ^^^^^^^^^^^^^^^^
        hint: use T.tma_copy(A[...], A_shared, barrier=bar)
        """,
    ),
    mistake(
        "barriers made by hand",
        "T.create_barriers(4)",
        """
        [TL4001] T.create_barriers is not offered: barriers are made ready where the launch begins
         --> program.py:6:9
          |
        6 |         T.create_barriers(4)
          |         ^^^^^^^^^^^^^^^^^^^^
        hint: use T.alloc_barrier, and T.cp_async_barrier_noinc(bar) after copies
        """,
    ),
    mistake(
        "an engine on a CPU",
        "T.tma_load(S, A)",
        """
        [TL4001] T.tma_load is an instruction of GPUs; cpu does not have it
         --> program.py:6:9
          |
        6 |         T.tma_load(S, A)
          |         ^^^^^^^^^^^^^^^^
        hint: use the portable operators (T.copy, T.gemm, T.sync_threads), or compile for a GPU
        """,
        target="cpu",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected
