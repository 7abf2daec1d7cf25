"""What explicit thread programs say: barriers, exchanges within a warp, who am I."""

from __future__ import annotations

import math
from typing import Any

from tile_api.frontend.builder import BlockKind, current
from tile_api.frontend.values import as_value
from tile_api.language.launch import require_launch
from tile_api.language.operands import call, count, emit, is_number
from tile_core.errors import ControlFlowError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.expr import BinaryOp, Const, Expr
from tile_core.ops.control import Barrier

__all__ = [
    "activemask", "all_sync", "any_sync", "ballot", "ballot_sync", "get_lane_idx",
    "get_warp_group_idx", "get_warp_idx", "get_warp_idx_sync", "match_all_sync", "match_any_sync",
    "named_barrier_arrive", "shfl_down", "shfl_sync", "shfl_up", "shfl_xor", "shuffle_elect",
    "sync_grid", "sync_threads", "sync_warp", "syncthreads_and", "syncthreads_count",
    "syncthreads_or", "thread_return", "tvm_storage_sync", "tvm_warp_activemask",
    "tvm_warp_shuffle", "tvm_warp_shuffle_down", "tvm_warp_shuffle_up",
]  # fmt: skip


_ALL_LANES = 0xFFFFFFFF
_BARRIERS, _WARP = 16, 32
"""Numbered barriers of a block, and what the threads that meet at one are a multiple of."""


def sync_threads(barrier_id: Any = None, arrive_count: Any = None) -> None:
    """Wait until all threads of the block get here; memory written before is then visible.

    Parameters
    ----------
    barrier_id
        One of the numbered barriers; by default the block's own.
    arrive_count
        How many threads take part in a numbered barrier; by default all.

    Raises
    ------
    FrontendValueError
        If there is no barrier of this number, or so many threads cannot meet.
    """
    _check_numbered(barrier_id, arrive_count)
    emit(Barrier("block", _optional(barrier_id), _optional(arrive_count)))


def _optional(value: Any) -> Expr | None:
    return None if value is None else as_value(value)


def _check_numbered(number: Any, threads: Any) -> None:
    """Refuse what no machine has, as far as numbers are known while tracing."""
    if is_number(number) and count(number, "the number of a barrier", least=0) >= _BARRIERS:
        raise FrontendValueError(
            f"there is no barrier {number}: they have numbers from 0 to {_BARRIERS - 1}",
            hint="use one of these numbers, or T.alloc_barrier for more of them",
        )
    if not is_number(threads):
        return
    most = math.prod(require_launch("T.sync_threads").threads)
    if not 1 <= count(threads, "the threads of a barrier") <= most or threads % _WARP:
        raise FrontendValueError(
            f"{threads} threads cannot meet at a barrier of a block of {most}: whole warps do",
            hint=f"give a multiple of {_WARP}, up to {most}",
        )


def named_barrier_arrive(barrier_id: Any, thread_count: Any) -> None:
    """Arrive at a numbered barrier without waiting."""
    _check_numbered(barrier_id, thread_count)
    emit(Barrier("block", as_value(barrier_id), as_value(thread_count), arrives_only=True))


def sync_warp(mask: Any = None) -> None:
    """Wait until the threads of this warp get here.

    Parameters
    ----------
    mask
        The lanes that take part, a bit each; all of them by default.
    """
    if mask is not None:
        as_value(mask)
    emit(Barrier("warp"))


def sync_grid() -> None:
    """Wait until all threads of all blocks get here.

    Each part of the kernel between barriers at its top level is a launch of its own, however many
    blocks there are. Tiles, variables and values that blocks and threads need behind the barrier
    are kept in global memory meanwhile. Barriers in loops and branches of GPUs are those of one
    cooperative launch: more blocks than run at a time are refused, with the numbers.
    """
    emit(Barrier("grid"))


def thread_return() -> None:
    """Leave the kernel: the thread that gets here does nothing of what follows.

    Barriers behind it wait for the threads that stay, if these are whole warps side by side.

    Raises
    ------
    ControlFlowError
        In `T.Parallel`, whose elements belong to no thread that could leave.
    """
    require_launch("T.thread_return")
    builder = current()
    if builder.inside(BlockKind.PARALLEL):
        raise ControlFlowError(
            "T.thread_return cannot stand in T.Parallel, whose elements all threads share out",
            hint="put an `if` around what shall not be done for some elements",
        )
    from tile_api.frontend.returns import ThreadReturn  # few kernels need it

    builder.threads_leave = True
    emit(ThreadReturn())


def tvm_storage_sync(storage_scope: str, is_load: bool = False, num_blocks: int = -1) -> None:
    """Wait for the threads that share memory of a scope: ``"shared"``, ``"warp"``, ``"global"``.

    Parameters
    ----------
    is_load, num_blocks
        Accepted for compatibility.
    """
    kinds = {"shared": "block", "shared.dyn": "block", "warp": "warp", "global": "grid"}
    if storage_scope not in kinds:
        told = f"there is no barrier for memory {storage_scope!r}"
        raise FrontendValueError(told, hint="use 'shared', 'warp' or 'global'")
    emit(Barrier(kinds[storage_scope]))


# Exchanges between the lanes of a warp ------------------------------------------------------
#
# A warp of the language is 32 threads on every machine. Where a machine runs 64 together, two
# warps share what it does; only shuffles of an explicit width of 64 reach across.


def shfl_sync(value: Any, srcLane: Any, width: Any = 32, mask: Any = _ALL_LANES) -> Expr:
    """Return `value` of the lane `srcLane`, counted within groups of `width` lanes."""
    return _shuffle("shfl_sync", value, srcLane, width)


def shfl_xor(value: Any, delta: Any, width: Any = 32, mask: Any = _ALL_LANES) -> Expr:
    """Return `value` of the lane whose number is this one's ``^ delta``."""
    return _shuffle("shfl_xor", value, delta, width)


def shfl_down(value: Any, delta: Any, width: Any = 32, mask: Any = _ALL_LANES) -> Expr:
    """Return `value` of the lane `delta` above; the own value at the group's end."""
    return _shuffle("shfl_down", value, delta, width)


def shfl_up(value: Any, delta: Any, width: Any = 32, mask: Any = _ALL_LANES) -> Expr:
    """Return `value` of the lane `delta` below; the own value at the group's start."""
    return _shuffle("shfl_up", value, delta, width)


def _shuffle(name: str, value: Any, lane: Any, width: Any) -> Expr:
    size = count(width, "the width of a shuffle")
    if size > 64 or size & (size - 1):
        told = f"the width of a shuffle is a power of two up to 64, got {size}"
        raise FrontendValueError(told, hint="use 32, or leave it out")
    return call(
        name, as_value(value), build_expr.cast(as_value(lane), "int32"), build_expr.const(size)
    )


def tvm_warp_shuffle(mask: Any, value: Any, warp_id: Any, width: Any, warp_size: Any) -> Expr:
    """Return `T.shfl_sync` in TVM's order of arguments."""
    return shfl_sync(value, warp_id, width)


def tvm_warp_shuffle_up(mask: Any, value: Any, offset: Any, width: Any, warp_size: Any) -> Expr:
    """Return `T.shfl_up` in TVM's order of arguments."""
    return shfl_up(value, offset, width)


def tvm_warp_shuffle_down(mask: Any, value: Any, offset: Any, width: Any, warp_size: Any) -> Expr:
    """Return `T.shfl_down` in TVM's order of arguments."""
    return shfl_down(value, offset, width)


def _voted(value: Any, mask: Any) -> Expr:
    """Return what is voted on, which CUDA writes after a mask of all lanes."""
    is_cuda = _is_full_mask(value) and not (is_number(mask) and mask == _ALL_LANES)
    return as_value(mask if is_cuda else value)


def _vote(name: str, predicate: Any, mask: Any) -> Expr:
    return call(name, build_expr.truth(_voted(predicate, mask)))


def _is_full_mask(value: Any) -> bool:
    number = value.value if isinstance(value, Const) else value
    return is_number(number) and number in (-1, _ALL_LANES, 2**64 - 1)


def any_sync(predicate: Any, mask: Any = _ALL_LANES) -> Expr:
    """Return 1 if `predicate` holds in any active lane of the warp, else 0."""
    return _vote("any_sync", predicate, mask)


def all_sync(predicate: Any, mask: Any = _ALL_LANES) -> Expr:
    """Return 1 if `predicate` holds in all active lanes of the warp, else 0."""
    return _vote("all_sync", predicate, mask)


def ballot_sync(predicate: Any, mask: Any = _ALL_LANES) -> Expr:
    """Return a bit per lane of the warp: whether `predicate` holds there."""
    return _vote("ballot_sync", predicate, mask)


def ballot(predicate: Any) -> Expr:
    """Return a bit per lane of the warp: whether `predicate` holds there."""
    return ballot_sync(predicate)


def activemask() -> Expr:
    """Return a bit per lane of the warp: whether it is running this."""
    return call("activemask")


def match_any_sync(value: Any, mask: Any = _ALL_LANES) -> Expr:
    """Return a bit per lane of the warp: whether it holds the same `value` as this one."""
    return call("match_any_sync", _voted(value, mask))


def match_all_sync(value: Any, mask: Any = _ALL_LANES) -> Expr:
    """Return the mask of the active lanes if all hold the same `value`, else 0."""
    return call("match_all_sync", _voted(value, mask))


def syncthreads_count(predicate: Any) -> Expr:
    """Wait for all threads of the block; return in how many `predicate` holds."""
    return call("syncthreads_count", build_expr.truth(as_value(predicate)))


def syncthreads_and(predicate: Any) -> Expr:
    """Wait for all threads of the block; return 1 if `predicate` holds in all, else 0."""
    return call("syncthreads_and", build_expr.truth(as_value(predicate)))


def syncthreads_or(predicate: Any) -> Expr:
    """Wait for all threads of the block; return 1 if `predicate` holds in any, else 0."""
    return call("syncthreads_or", build_expr.truth(as_value(predicate)))


# Who am I -----------------------------------------------------------------------------------


def linear_thread_index() -> Expr:
    """Return the number of this thread in its block, x fastest."""
    launch = require_launch("the thread index")
    index: Expr = build_expr.as_expr(0)
    for var, extent in reversed(tuple(zip(launch.thread_vars, launch.threads, strict=True))):
        if extent > 1:
            index = index * extent + var
    return index


def get_lane_idx(warp_size: Any = None) -> Expr:
    """Return the number of this thread in its warp, of 32 threads unless `warp_size` is given."""
    return linear_thread_index() % _warp(warp_size)


def get_warp_idx(warp_size: Any = None) -> Expr:
    """Return the number of this thread's warp in its block."""
    return linear_thread_index() // _warp(warp_size)


def get_warp_idx_sync(warp_size: Any = None) -> Expr:
    """Return the number of this thread's warp in its block, all lanes together."""
    return get_warp_idx(warp_size)


def get_warp_group_idx(warp_size: Any = None, warps_per_group: Any = None) -> Expr:
    """Return the number of this thread's group of warps, of 4 unless told otherwise."""
    warps = 4 if warps_per_group is None else count(warps_per_group, "warps_per_group")
    return linear_thread_index() // (_warp(warp_size) * warps)


def _warp(size: Any) -> int:
    """Return how many threads a warp has: on every machine as many as on NVIDIA's."""
    return _WARP if size is None else count(size, "warp_size")


def shuffle_elect(thread_extent: Any = 0) -> Expr:
    """Return whether this is the chosen thread: one per `thread_extent` threads, or per block.

    Parameters
    ----------
    thread_extent
        The size of a group, or 0 for the whole block.
    """
    size = count(thread_extent, "thread_extent", least=0)
    index = linear_thread_index()
    return build_expr.binary(BinaryOp.EQ, index % size if size else index, 0)


tvm_warp_activemask = activemask
