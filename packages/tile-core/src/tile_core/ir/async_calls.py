"""Functions of the device header for copy engines, asynchronous products and clusters of blocks.

Barriers are elements of flat uint64 buffers in shared memory, named by address. A tensor map is
a `Var` of dtype ``handle`` that stands for a `tile_core.simt.program.TensorMap`. What a copy or a
product writes while it is in flight must not be touched until a wait said that it is complete;
calls that start, announce or await such work have the effect STATE, so that nothing moves
across them. What a machine's header calls them, `tile_core.machine.SimtMachine` says.
"""

from __future__ import annotations

from tile_core.ir.device_call import DeviceCall
from tile_core.ir.effect import Effect

_MEMORY = Effect.READS | Effect.WRITES
_ASYNC = _MEMORY | Effect.STATE
_WARPS = _ASYNC | Effect.WARP  # by all lanes of a warp, or all warps of a group, together


def _calls(effect: Effect, templates: int, names: str) -> tuple[DeviceCall, ...]:
    return tuple(DeviceCall(name, templates, effect=effect) for name in names.split())


_BARRIERS = (
    # (bar, arrivals), by one thread; then () and a barrier of the block, or the cluster.
    *_calls(_ASYNC, 0, "mbarrier_init fence_mbarrier_init"),
    # (bar); (bar, rank in the cluster): the barrier at the same place of that block. Who frees
    # tells nobody there of what it wrote.
    *_calls(_ASYNC, 0, "mbarrier_arrive mbarrier_arrive_remote mbarrier_free_remote"),
    # Bytes that copies will complete: (bar, bytes).
    *_calls(_ASYNC, 0, "mbarrier_expect_tx mbarrier_arrive_expect_tx"),
    # (bar, parity): until the phase of that parity has completed; `_cluster` if threads of other
    # blocks tell there of what they wrote.
    *_calls(_ASYNC, 0, "mbarrier_wait mbarrier_wait_cluster"),
    # (bar): this thread's earlier async_copy arrive, without being counted, when complete.
    *_calls(_ASYNC, 0, "async_copy_mbarrier_arrive"),
    # (): what this thread wrote to shared memory is seen by asynchronous reads.
    *_calls(_ASYNC, 0, "fence_proxy_async"),
)

_TENSOR_COPIES = (
    *_calls(_ASYNC, 1, "tensor_load"),  # <RANK>(shared, map, bar, coordinates)
    *_calls(_ASYNC, 1, "tensor_load_multicast"),  # <RANK>(shared, map, bar, mask, coordinates)
    # <RANK>(map, shared, coordinates)
    *_calls(_ASYNC, 1, "tensor_store tensor_reduce_add tensor_reduce_min tensor_reduce_max"),
    *_calls(_ASYNC, 0, "bulk_load"),  # (shared, global, bytes, bar)
    *_calls(_ASYNC, 0, "bulk_store bulk_reduce_add"),  # (global, shared, bytes)
    *_calls(_ASYNC, 0, "bulk_copy_remote"),  # (shared, rank, source, bytes, bar)
    *_calls(_ASYNC, 0, "bulk_store_commit"),  # ()
    *_calls(_ASYNC, 1, "bulk_store_wait_read bulk_store_wait"),  # <PENDING>()
    *_calls(Effect.STATE, 0, "tensor_map_prefetch"),  # (map)
)

_PRODUCTS = (
    *_calls(_WARPS, 0, "async_mma_fence async_mma_commit"),  # ()
    *_calls(_WARPS, 1, "async_mma_wait"),  # <PENDING>()
    *_calls(_WARPS, 1, "async_mma_pin"),  # <REGISTERS>(sums)
    # <N, TA, TB, STEPS>(sums, operand, operand), <N, TB, STEPS>(sums, registers, operand): one
    # step of K if the last number is left out.
    *(
        DeviceCall(name, effect=_WARPS, operands=3)
        for name in ("async_mma_ss", "async_mma_ss_set", "async_mma_rs", "async_mma_rs_set")
    ),
    # <SWIZZLE, LEADING, STRIDE, NEXT, PART, FAR>(shared, units): bytes, and a start moved by units
    # of 16 bytes. Of several steps, those after NEXT units each; PART of them are side by side,
    # FAR units in front of others. The last numbers may be left out.
    DeviceCall("async_mma_operand", result="handle", effect=Effect.NONE, operands=2),
    # (row address, registers): the way back of load_matrix.
    *(
        DeviceCall(f"store_matrix_x{count}{suffix}", effect=_MEMORY | Effect.WARP)
        for count in (1, 2, 4)
        for suffix in ("", "_trans")
    ),
    # <R>(): registers of each thread of a group of warps.
    *_calls(_WARPS, 1, "registers_increase registers_decrease"),
    DeviceCall("elect", result="bool", effect=Effect.WARP),  # (): true in one lane
)

_CLUSTERS = (
    *_calls(_ASYNC | Effect.BLOCK, 0, "cluster_arrive cluster_wait cluster_sync"),  # ()
    *_calls(Effect.BLOCK, 0, "cluster_arrive_relaxed"),  # ()
    DeviceCall("cluster_rank", result="int32", effect=Effect.NONE),  # ()
    # (shared, rank): the same place in another block of the cluster.
    DeviceCall("remote", result="handle", effect=Effect.NONE),
    # (): until the grids before this one are done; allow the next one to begin.
    *_calls(_ASYNC, 0, "grid_wait grid_launch"),
)

ASYNC_CALLS: tuple[DeviceCall, ...] = (*_BARRIERS, *_TENSOR_COPIES, *_PRODUCTS, *_CLUSTERS)
"""Barriers in memory, copies of tensors, asynchronous products, clusters of blocks."""
