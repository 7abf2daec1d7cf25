"""Clusters: blocks that run at the same time and reach each other's shared memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tile_api.frontend.builder import BlockKind, current
from tile_api.frontend.values import as_region, as_value
from tile_api.language.barriers import (
    alloc_barrier,
    barrier_region,
    gpu_call,
    mbarrier_arrive,
    mbarrier_wait_parity,
)
from tile_api.language.launch import (
    KernelLaunchFrame,
    get_block_binding,
    get_block_bindings,
    get_block_extent,
    get_block_extents,
    get_thread_binding,
    get_thread_bindings,
    get_thread_extent,
    get_thread_extents,
    pick,
    require_launch,
)
from tile_api.language.loops import grid
from tile_api.language.operands import choice, count, emit, evaluate, here, is_number
from tile_core.dtypes import dtype_of
from tile_core.errors import FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.expr import Expr, Load
from tile_core.ir.stmt import Alloc, Store
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.region_pairing import pair
from tile_core.ops.remote_copy import RemoteCopy, inner_shape

__all__ = [
    "block_rank_in_cluster", "cluster_arrive", "cluster_arrive_relaxed", "cluster_sync",
    "cluster_wait", "copy_cluster", "get_cluster_dims", "get_cluster_extent", "get_cluster_extents",
    "get_cluster_id", "get_cluster_ids", "get_cluster_size", "tma_copy",
]  # fmt: skip

_EVICTION = ("evict_normal", "evict_first", "evict_last")


def get_cluster_dims() -> tuple[int, int, int]:
    """Return how many blocks a cluster has along x, y and z; (1, 1, 1) without clusters."""
    x, y, z = (*require_launch("T.get_cluster_dims").cluster, 1, 1, 1)[:3]
    return x, y, z


def get_cluster_size() -> int:
    """Return how many blocks a cluster has."""
    return math.prod(get_cluster_dims())


def get_cluster_extents() -> list[Any]:
    """Return how many clusters the grid has along each of its dimensions."""
    grid = require_launch("T.get_cluster_extents").grid
    found = [e // n for e, n in zip(grid, get_cluster_dims(), strict=False)]
    return [e if (v := static_value(e)) is None else v for e in found]


def get_cluster_extent(dim: int = 0) -> Any:
    """Return how many clusters the grid has along `dim`."""
    return pick(get_cluster_extents(), dim, "the grid")


def get_cluster_ids() -> list[Expr]:
    """Return the indices of this block's cluster in the grid of clusters."""
    blocks = require_launch("T.get_cluster_ids").block_vars
    return [b // n for b, n in zip(blocks, get_cluster_dims(), strict=False)]


def get_cluster_id(dim: int = 0) -> Expr:
    """Return the index of this block's cluster along `dim`."""
    return pick(get_cluster_ids(), dim, "the grid")


def block_rank_in_cluster() -> Expr:
    """Return the number of this block in its cluster, x fastest."""
    _launch_in_clusters("T.block_rank_in_cluster")
    return gpu_call("block_rank_in_cluster")


def cluster_arrive() -> None:
    """Say that this thread is here and wait for nobody; what it wrote is visible to who waits."""
    _cluster("cluster_arrive")


def cluster_arrive_relaxed() -> None:
    """Say that this thread is here, without making visible what it wrote."""
    _cluster("cluster_arrive_relaxed")


def cluster_wait() -> None:
    """Wait until all threads of the cluster's blocks have said that they are here."""
    _cluster("cluster_wait")


def cluster_sync() -> None:
    """Wait until all threads of all blocks of the cluster get here."""
    _cluster("cluster_sync")


def _cluster(name: str) -> None:
    _launch_in_clusters(f"T.{name}")
    evaluate(gpu_call(name))


def _launch_in_clusters(what: str) -> KernelLaunchFrame:
    launch = require_launch(what)
    if not launch.cluster:
        told = f"{what} is for blocks in clusters, and this launch has none"
        raise FrontendValueError(told, hint="write T.Kernel(..., cluster_dims=2)")
    return launch


for _query in (
    *(get_block_binding, get_block_bindings, get_block_extent, get_block_extents),
    *(get_thread_binding, get_thread_bindings, get_thread_extent, get_thread_extents),
    *(get_cluster_dims, get_cluster_size, get_cluster_extent, get_cluster_extents),
    *(get_cluster_id, get_cluster_ids),
):  # a launch is asked by itself, too: T.KernelLaunchFrame.Current().get_block_extent(0)
    setattr(KernelLaunchFrame, _query.__name__, staticmethod(_query))


# Copies -------------------------------------------------------------------------------------


def tma_copy(
    src: Any,
    dst: Any,
    *,
    barrier: Any = None,
    cluster_mask: Any = None,
    leader_scope_threads: int | None = None,
    eviction_policy: str | None = None,
    annotations: Any = None,
) -> None:
    """Let the tensor memory engine copy a box between a tensor and a shared tile.

    The first of the running threads starts the copy (in a program that names no threads, one that
    the machine elects); nobody waits. A copy into shared memory tells
    `barrier` how many bytes to expect, does not arrive, and is there once the phase of that
    barrier has completed. A copy into a tensor is a group of its own, and complete after
    `T.tma_store_wait`.

    Parameters
    ----------
    src, dst
        As those of `T.copy`; one in global and one in shared memory, of one element type.
    barrier
        For copies into shared memory: ``bar`` or ``bar[i]``.
    cluster_mask
        Blocks of the cluster, a bit each, that all run this copy with the same source: the
        first of them fetches the box once for all, into the same place of each. Blocks that
        the mask leaves out fetch theirs alone.
    leader_scope_threads, annotations
        Accepted, without effect on results.
    eviction_policy
        A cache hint, as of `T.copy`.

    Raises
    ------
    ScopeMismatch, DtypeMismatch
        If the copy engine does not copy between such tiles.
    FrontendValueError
        If a copy into shared memory has no barrier, or one into a tensor has, or `cluster_mask`
        names blocks that the cluster does not have.
    """
    op = _bulk_copy(src, dst, barrier, cluster_mask, eviction_policy)
    emit(op)
    if not op.is_load:
        evaluate(gpu_call("tma_store_arrive"))


def _bulk_copy(src: Any, dst: Any, barrier: Any, cluster_mask: Any, policy: Any) -> BulkCopy:
    bar = None if barrier is None else barrier_region(barrier, "the barrier of T.tma_copy")
    op = BulkCopy(
        as_region(src, "the source of T.tma_copy"),
        as_region(dst, "the destination of T.tma_copy"),
        bar,
        expects=bar is not None,
        multicast=None if cluster_mask is None else _mask(cluster_mask),
        eviction_policy=None if policy is None else choice(policy, _EVICTION, "eviction policy"),
        span=here(),
    )
    op.verify()
    return _with_extents(op)


def _with_extents(op: BulkCopy) -> BulkCopy:
    """Write out how much of the tile a copy fills whose tile is given by its first element."""
    if not op.tile.is_element:
        return op
    pairing = pair(op.src, op.dst)
    axes = pairing.dst_axes if op.is_load else pairing.src_axes
    extents = tuple(1 if axis is None else pairing.extents[axis] for axis in axes)
    tile = replace(op.tile, extents=extents, is_element=False)
    return replace(op, dst=tile) if op.is_load else replace(op, src=tile)


def _mask(value: Any) -> Expr | None:
    launch = _launch_in_clusters("cluster_mask=")
    size = math.prod(launch.cluster)
    if is_number(value):
        number = count(value, "cluster_mask", least=1)
        if number >= 1 << size:
            raise FrontendValueError(
                f"cluster_mask={number:#x} names block {number.bit_length() - 1} of a cluster of "
                f"{size} blocks",
                hint=f"use bits 0 to {size - 1}: at most {(1 << size) - 1:#x}",
            )
        if number & (number - 1) == 0:
            return None
    launch.leaves_together = True  # no block ends before what is fetched for it has come
    if is_number(value):
        return build_expr.const(value)
    return build_expr.cast(as_value(value), "int32")


def _check_block(dst_block: Any, size: int) -> None:
    """Refuse the number of a block that a cluster of `size` blocks does not have."""
    if dst_block is None:
        raise FrontendValueError(
            "T.copy_cluster must be told to which block it copies",
            hint="write dst_block=rank, the number of a block in the cluster",
        )
    if is_number(dst_block) and count(dst_block, "dst_block", least=0) >= size:
        told = f"there is no block {dst_block} in a cluster of {size}"
        raise FrontendValueError(told, hint=f"use ranks 0 to {size - 1}")


def copy_cluster(
    src: Any,
    dst: Any,
    *,
    dst_block: Any = None,
    cluster_mask: Any = None,
    remote_barrier: Any = None,
    eviction_policy: str | None = None,
    coalesced_width: int | None = None,
    annotations: Any = None,
    loop_layout: object | None = None,
) -> None:
    """Copy a shared tile into the shared memory of another block of the cluster.

    Parameters
    ----------
    src, dst
        Shared tiles of one element type, or parts of them of one shape; `dst` names the tile as
        this block does, and means that of block `dst_block`. Parts of several rows are copied
        row by row.
    dst_block
        Its rank in the cluster.
    cluster_mask
        Instead of `dst_block`, for a tensor `src`: `T.tma_copy` with this mask. Without
        `remote_barrier` the data is there afterwards, in all blocks of the cluster: they meet
        before, for the tile must be free in all of them.
    remote_barrier
        A barrier of block `dst_block`, by its name here: the copy runs by itself and tells the
        barrier of its bytes, which that block expects. Without it the threads copy, and the
        data is there after `T.cluster_sync`.
    eviction_policy, coalesced_width, annotations, loop_layout
        Hints, as of `T.copy`, without effect on results.

    Raises
    ------
    FrontendValueError
        If the launch has no clusters, or it is not said where to copy.
    ShapeMismatch, ScopeMismatch, DtypeMismatch
        If the tiles are not alike.
    """
    if cluster_mask is not None and dst_block is None:
        _fetch_together(src, dst, cluster_mask, remote_barrier, eviction_policy)
        return
    launch = _launch_in_clusters("T.copy_cluster")
    _check_block(dst_block, math.prod(launch.cluster))
    told = remote_barrier is not None
    bar = barrier_region(remote_barrier, "the barrier of T.copy_cluster") if told else None
    launch.leaves_together = True
    source = as_region(src, "the source of T.copy_cluster")
    target = as_region(dst, "the destination of T.copy_cluster")
    rank = build_expr.cast(as_value(dst_block), "int32")
    for a, b in _runs(source, target):
        emit(RemoteCopy(a, b, rank, bar))


def _fetch_together(src: Any, dst: Any, mask: Any, told: Any, policy: str | None) -> None:
    """Let one block fetch for others; without a barrier that is told, wait in each for its part."""
    if told is not None:
        tma_copy(src, dst, barrier=told, cluster_mask=mask, eviction_policy=policy)
        return
    launch, builder = _launch_in_clusters("T.copy_cluster"), current()
    launch.leaves_together = True
    bar = alloc_barrier(math.prod(launch.threads))
    phase = Buffer(builder.fresh("phase"), (1,), dtype_of("int32"), Scope.VAR, span=builder.span)
    at = (build_expr.const(0),)
    start = next(block for block in builder.blocks if block.kind is BlockKind.LAUNCH)
    start.statements[:0] = [
        Alloc(phase, span=builder.span),
        Store(phase, at, build_expr.const(0), span=builder.span),
    ]
    cluster_sync()
    tma_copy(src, dst, barrier=bar, cluster_mask=mask, eviction_policy=policy)
    mbarrier_arrive(bar)
    mbarrier_wait_parity(bar, Load(phase, at, span=here()))
    emit(Store(phase, at, Load(phase, at, span=here()) ^ 1))


def _runs(src: Region, dst: Region) -> Iterator[tuple[Region, Region]]:
    """Yield regions whose elements lie side by side, in a loop where there are several."""
    whole = inner_shape(src) is not None and inner_shape(src) == inner_shape(dst)
    long, others = ([e for e in r.extents if e != 1] for r in (src, dst))
    if whole or len(long) < 2 or long != others:
        yield src, dst
        return
    for point in grid(*long[:-1]):
        at = point if isinstance(point, tuple) else (point,)
        yield _row(src, at), _row(dst, at)


def _row(region: Region, at: tuple[Expr, ...]) -> Region:
    """Return the part of a region with these indices along its first long dimensions."""
    left = iter(at)
    starts, extents = list(region.starts), list(region.extents)
    for axis, extent in enumerate(region.extents):
        index = None if extent == 1 else next(left, None)
        if index is not None:
            starts[axis], extents[axis] = build_expr.as_expr(starts[axis]) + index, 1
    return Region(region.buffer, tuple(starts), tuple(extents), span=region.span)
