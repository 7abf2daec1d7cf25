"""Parts of tiles that blocks of a cluster copy to each other."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget


def exchanged(told: bool, first: int = 8):
    """Rows of parts of rows, and whole rows, go to the other block of a pair."""
    last = first + 16

    @T.prim_func
    def main(A: T.Tensor((2, 8, 32), "float32"), C: T.Tensor((2, 2, 8, 32), "float32")):
        with T.ClusterKernel(2, cluster_dims=2, threads=128) as bx:
            mine = T.alloc_shared((8, 32), "float32")
            theirs = T.alloc_shared((2, 8, 32), "float32")
            came = T.alloc_cluster_barrier(1)
            other = 1 - bx
            tx = T.get_thread_binding()
            T.copy(A[bx, :, :], mine)
            T.clear(theirs)
            T.cluster_sync()
            if told:
                if tx == 0:
                    T.mbarrier_arrive_expect_tx(came, (3 * 16 + 4 * 32) * 4)
                T.copy_cluster(
                    mine[1:4, first:last],
                    theirs[1, 2:5, 12:28],
                    dst_block=other,
                    remote_barrier=came,
                )
                T.copy_cluster(
                    mine[4:8, :], theirs[0, 0:4, :], dst_block=other, remote_barrier=came
                )
                T.mbarrier_wait_parity(came, 0)
            else:
                T.copy_cluster(mine[1:4, first:last], theirs[1, 2:5, 12:28], dst_block=other)
                T.copy_cluster(mine[4:8, :], theirs[0, 0:4, :], dst_block=other)
            T.cluster_sync()
            T.copy(theirs, C[bx, :, :, :])

    return main


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ["interpret", "cuda:sm_90a@sim"])
@pytest.mark.parametrize(("told", "first"), [(True, 8), (False, 8), (False, 5)])
def test_parts_of_tiles_reach_the_other_block(target: str, told: bool, first: int) -> None:
    a = np.random.default_rng(3).standard_normal((2, 8, 32)).astype(np.float32)
    c = np.full((2, 2, 8, 32), np.nan, np.float32)
    tile.compile(exchanged(told, first), target=target)(a, c)
    wanted = np.zeros_like(c)
    for block in range(2):
        wanted[block, 1, 2:5, 12:28] = a[1 - block, 1:4, first : first + 16]
        wanted[block, 0, 0:4] = a[1 - block, 4:8]
    np.testing.assert_array_equal(c, wanted)


def test_engines_copy_from_multiples_of_sixteen_bytes() -> None:
    @T.prim_func
    def main(A: T.Tensor((32,), "float32")):
        with T.ClusterKernel(2, cluster_dims=2, threads=32) as bx:
            mine = T.alloc_shared((32,), "float32")
            theirs = T.alloc_shared((32,), "float32")
            came = T.alloc_cluster_barrier(1)
            T.copy(A, mine)
            if T.get_thread_binding() == 0:
                T.mbarrier_arrive_expect_tx(came, 16)
            T.cluster_sync()
            T.copy_cluster(mine[1:5], theirs[8:12], dst_block=1 - bx, remote_barrier=came)
            T.mbarrier_wait_parity(came, 0)
            T.cluster_sync()

    with pytest.raises(UnsupportedOnTarget) as caught:
        tile.lower(main, target="cuda:sm_90a")
    assert caught.value.message == (
        "'mine' has a part that begins at byte 4, no multiple of 16: the copy engine cannot copy it"
    )
