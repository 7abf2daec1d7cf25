"""Blocks of a cluster copy a part of a tile each, for all blocks that need it."""

from __future__ import annotations

from typing import Any

import pytest

import tile_api.language as T
from support.specialised import done, operators, roles
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.control import ClusterSync
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit


def clustered(cluster: tuple[int, ...], *, rounds_by_column: bool = False) -> Any:
    """Return a matrix product in clusters of blocks."""

    @T.prim_func
    def kernel(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
        C: T.Tensor((512, 512), "float16"),
    ):
        with T.Kernel(4, 4, threads=128, cluster_dims=cluster) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            T.clear(sums)
            for k in T.Pipelined(bx + 1 if rounds_by_column else 8, num_stages=2):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * 128, bx * 128])

    return kernel


@pytest.mark.parametrize(
    ("cluster", "shared", "arrivals"),
    [
        ((2, 1, 1), {"A_s": (1, 64, 64)}, 8),
        ((1, 2, 1), {"B_s": (1, 32, 128)}, 8),
        ((4, 1, 1), {"A_s": (1, 32, 64)}, 16),
        ((2, 2, 1), {"A_s": (1, 64, 64), "B_s": (1, 32, 128)}, 16),
    ],
)
def test_blocks_of_a_cluster_copy_a_part_for_all_that_need_it(
    cluster: tuple[int, ...], shared: dict[str, tuple[int, ...]], arrivals: int
) -> None:
    """Blocks beside each other need the same rows of A, those below each other the same of B."""
    made = done(clustered(cluster))
    producer, _ = roles(made)
    parts = {c.dst.buffer.name: c for c in operators(producer, BulkCopy)}
    assert {
        name: c.dst.static_extents for name, c in parts.items() if c.multicast is not None
    } == shared
    (empty,) = [
        i for i in operators(made.kernel.body, BarrierInit) if i.barriers.name == "A_s_empty"
    ]
    assert empty.counts == (arrivals, arrivals)
    assert len(operators(made.kernel.body, ClusterSync)) == 2
    (ahead,) = {a.nbytes for a in operators(producer, BarrierArrive)}
    assert ahead == 2 * (128 * 64 + 64 * 128)  # what all parts bring together


def test_blocks_that_run_other_rounds_share_nothing() -> None:
    made = done(clustered((2, 1, 1), rounds_by_column=True))
    producer, _ = roles(made)
    assert [c.multicast for c in operators(producer, BulkCopy)] == [None, None]
    assert not operators(made.kernel.body, ClusterSync)


@pytest.mark.parametrize(
    ("several", "rows", "part"),
    [(4, 64, (1, 2, 64, 64)), (2, 64, (1, 2, 32, 64)), (4, 36, None)],
)
def test_several_matrices_are_parted_between_them(
    several: int, rows: int, part: tuple[int, ...] | None
) -> None:
    """Each block copies some of them if there are several for each, else some rows of all.

    Where a part would begin within a swizzle's pattern, each block copies all for itself.
    """

    @T.prim_func
    def kernel(
        A: T.Tensor((several, 8 * rows, 512), "float16"),
        B: T.Tensor((several, 512, 512), "float16"),
    ):
        with T.Kernel(4, 4, threads=128, cluster_dims=(1, 2, 1)) as (bx, by):
            A_s = T.alloc_shared((several, rows, 64), "float16")
            sums = T.alloc_fragment((several, rows, 64), "float16")
            T.clear(sums)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * rows, bx * 64], A_s)
                for i, j, m in T.Parallel(several, rows, 64):
                    sums[i, j, m] += A_s[i, j, m]
            T.copy(sums, B[0, by * rows, bx * 64])

    producer, _ = roles(done(kernel))
    (copy,) = operators(producer, BulkCopy)
    assert (None if copy.multicast is None else copy.dst.static_extents) == part
