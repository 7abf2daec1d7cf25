"""The functions of the device header that lowered programs may call, and their effects.

A call is ``device("async_copy", 16, address, address, predicate)``. It prints as
``tile::async_copy<16>(dst + i, src + j, predicate)``, or with the name that the machine's header
has for it (`tile_core.machine.SimtMachine.device_names`). The headers that toolchains see define
all of them with one meaning; this table is what passes know.
"""

from __future__ import annotations

from tile_core.errors import InternalError
from tile_core.ir.effect import Effect
from tile_core.records import dataclass

PREFIX = "device:"

_BOTH = Effect.READS | Effect.WRITES
_ASYNC = _BOTH | Effect.STATE


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """One function of the header."""

    name: str
    templates: int = 0  # how many leading arguments are constants, printed between angle brackets
    result: str = "void"  # element type of the result; ``"void"`` for none
    effect: Effect = Effect.READS | Effect.WRITES  # what a call does beside returning a value
    # The first template argument is an element type, taken from the result of the call.
    is_typed: bool = False
    # How many arguments follow these, where some of them may be left out.
    operands: int | None = None


# Copy engines, asynchronous products, clusters of blocks ----------------------------------------
#
# Barriers are elements of flat uint64 buffers in shared memory, named by address. A tensor map is
# a `Var` of dtype ``handle`` that stands for a `tile_core.simt.program.TensorMap`. What a copy or a
# product writes while it is in flight must not be touched until a wait said that it is complete;
# calls that start, announce or await such work have the effect STATE, so that nothing moves
# across them.

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
    # <RANK>(shared, map, bar, coordinates): on the barrier of the first block of a pair.
    *_calls(_ASYNC, 1, "tensor_load_pair"),
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
        DeviceCall(f"store_matrix_x{count}{suffix}", effect=_BOTH | Effect.WARP)
        for count in (1, 2, 4)
        for suffix in ("", "_trans")
    ),
    # <R>(): registers of each thread of a group of warps.
    *_calls(_WARPS, 1, "registers_increase registers_decrease"),
    DeviceCall("elect", result="bool", effect=Effect.WARP),  # (): true in one lane
)

# Matrix units with memory of their own, in which sums stay: rows of it by columns. A warp reaches a
# quarter of the rows, by its number.
_ACCUMULATORS = (
    # <COLUMNS>(place), <COLUMNS>(base): by a warp, which writes to shared memory where they begin.
    *_calls(_WARPS, 1, "accumulators_alloc accumulators_free"),
    DeviceCall("accumulators_base", result="int32", effect=_ASYNC),  # (place)
    # <COLUMNS>(registers, base, column): a row for each thread of four warps.
    *_calls(_WARPS, 1, "accumulators_load accumulators_store"),
    # (): what was done there comes before others' work, or after; around where threads meet.
    *_calls(_ASYNC, 0, "accumulators_before accumulators_after"),
    # <M, N, TA, TB, STEPS>(base, column, operand, operand), or with the first operand there too
    # <N, TB, STEPS>(base, column, column, operand), by one thread; then (bar): an arrival when all
    # that this thread has started is done. With `set` previous sums are dropped.
    *(
        DeviceCall(f"accumulators_mma{form}", effect=_ASYNC, operands=4)
        for form in ("", "_set", "_ts", "_ts_set")
    ),
    # (base, column, scales): those of 128 rows, four of each, from 512 bytes of shared memory; then
    # as above, with columns of scales of both operands and the first that counts. By one thread.
    # A number more says how many groups a step has, if not one: bytes are pairs of 4-bit floats.
    *_calls(_ASYNC, 0, "accumulators_scales"),
    *(
        DeviceCall(f"accumulators_mma_scaled{form}", effect=_ASYNC, operands=7)
        for form in ("", "_set")
    ),
    *_calls(_ASYNC, 0, "accumulators_arrive"),
    # Two blocks of a cluster are a pair: both take and free columns. The first starts products of
    # the rows of both, <N, TA, TB, STEPS>(base, column, operand, operand): each has half of the
    # second operand's columns. (bar): an arrival in both, or at the first one of what this one did.
    *_calls(_WARPS, 1, "accumulators_alloc_pair accumulators_free_pair"),
    *(
        DeviceCall(f"accumulators_mma_pair{form}", effect=_ASYNC, operands=4)
        for form in ("", "_set")
    ),
    *_calls(_ASYNC, 0, "accumulators_arrive_pair accumulators_tell_first"),
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

ASYNC_CALLS: tuple[DeviceCall, ...] = (
    *(*_BARRIERS, *_TENSOR_COPIES, *_PRODUCTS, *_ACCUMULATORS, *_CLUSTERS),
)
"""Barriers in memory, copies of tensors, asynchronous products, clusters of blocks."""

# Machines whose warps count their copies --------------------------------------------------------
#
# The lanes of a warp, 64 of them perhaps, start such a copy together, from a tensor straight into
# shared memory. Nothing names it: a warp waits until no more than a number of its own are in
# flight, the youngest.

COUNTED_LOAD, COUNTED_WAIT, UNIFORM = "counted_load", "counted_wait", "uniform"

MOST_UNDER_WAY = 63
"""The largest number a wave can wait for: the counter has six bits."""

_COPIES = (
    # <BYTES>(shared, tensor, index, predicate), by all lanes of a wave: lane l's BYTES, 4 or 16,
    # go to ``shared + l * BYTES``, from element `index` behind `tensor`; zeros where the
    # predicate is false. `shared` and `tensor` are the same in all lanes of a wave.
    DeviceCall(COUNTED_LOAD, 1, effect=_ASYNC | Effect.WARP),
    DeviceCall(COUNTED_WAIT, 1, effect=_ASYNC),  # <N>(): at most N loads of the wave in flight
    # (x): the value of the wave's first lane, where all its lanes have the same.
    DeviceCall(UNIFORM, result="int32", effect=Effect.NONE),
)

KEEP_ORDER = "keep_order"
BAR_READY, BAR_SYNC, BAR_ARRIVE = "bar_ready", "bar_sync_counted", "bar_arrive_counted"

_COUNTED_BARRIERS = (
    # Barriers with numbers, in shared memory: two words each, how many waves came and how often
    # it has opened. Whole waves arrive and wait.
    DeviceCall(BAR_READY, effect=_BOTH | Effect.BLOCK),  # (words, how many)
    DeviceCall(BAR_SYNC, effect=_BOTH | Effect.BLOCK),  # (words, number, threads)
    DeviceCall(BAR_ARRIVE, effect=_BOTH | Effect.BLOCK),  # (words, number, threads)
)

_FENCES = (
    # (): the compiler moves no instruction across; nothing happens at run time.
    DeviceCall(KEEP_ORDER, effect=Effect.STATE),
)

COUNTED_CALLS: tuple[DeviceCall, ...] = (*_COPIES, *_COUNTED_BARRIERS, *_FENCES)
"""Copies into shared memory that are counted, and barriers in memory for some of the waves."""


# All of them -------------------------------------------------------------------------------------

_CALLS = (
    # Vectors of `N` elements between memory and registers, aligned to their size.
    DeviceCall("load", 1),  # <N>(registers, memory)
    DeviceCall("store", 1),  # <N>(memory, registers)
    DeviceCall("atomic_add", 1, effect=_BOTH | Effect.ATOMIC),  # <N>(memory, registers)
    # (memory, shift, bits): four bits of a byte; others may store its other four meanwhile.
    DeviceCall("store_nibble", effect=_BOTH | Effect.ATOMIC),
    # Asynchronous copies of 4, 8 or 16 bytes; zeros where the predicate is false.
    DeviceCall("async_copy", 1, effect=_BOTH | Effect.STATE),  # <BYTES>(shared, global, predicate)
    DeviceCall("async_copy_commit", effect=Effect.STATE),
    DeviceCall("async_copy_wait", 1, effect=_BOTH | Effect.STATE),  # <PENDING>()
    # Barriers.
    DeviceCall("sync", effect=Effect.BLOCK),  # all threads of the block
    DeviceCall("sync_warp", effect=Effect.WARP),
    DeviceCall("bar_sync", effect=Effect.BLOCK),  # (number, threads)
    DeviceCall("bar_arrive", effect=Effect.BLOCK),  # (number, threads)
    # Matrix fragments; `dst` are registers, `src` is the row address this lane gives.
    *(
        DeviceCall(f"load_matrix_x{n}{trans}", effect=_BOTH | Effect.WARP)
        for n in (1, 2, 4)
        for trans in ("", "_trans")
    ),
    # a / b in float32, made for many a to one b.
    DeviceCall("quotient", result="float32", effect=Effect.NONE),
    DeviceCall("dp4a"),  # (d, a, b): *d += four products of int8
    *ASYNC_CALLS,
    *COUNTED_CALLS,
)  # fmt: skip

DEVICE_CALLS: dict[str, DeviceCall] = {call.name: call for call in _CALLS}
"""By name, without matrix instructions: backends name these."""

MMA = "mma_"
"""What the names of matrix instructions begin with: a backend's own shapes follow."""

SCALED_MMA = "mma_scaled_"
"""What the names of those with scales begin with."""

_MMA_OPERANDS = 3
_SCALED_MMA_OPERANDS = 9


def device_call(name: str) -> DeviceCall | None:
    """Return what is known of the header's function `name`, None if it has none.

    Of a matrix instruction, such as ``mma_m16n8k16``, the name says the shape. It is overloaded on
    the element types of its last arguments ``(d, a, b)``: d += a @ b, by all lanes of a warp, on
    registers in the backend's order. Constants that say more may stand in front of them. Those
    with scales have, behind them, a word of these for each operand, and for each of the two which
    bytes of which lanes count.
    """
    if name.startswith(SCALED_MMA):
        return DeviceCall(name, effect=_BOTH | Effect.WARP, operands=_SCALED_MMA_OPERANDS)
    if name.startswith(MMA):
        return DeviceCall(name, effect=_BOTH | Effect.WARP, operands=_MMA_OPERANDS)
    return DEVICE_CALLS.get(name)


def device_effect(function: str) -> Effect:
    """Return the effects of calling ``device:name``."""
    row = device_call(function.removeprefix(PREFIX))
    if row is None:
        raise InternalError(f"the device header has no function {function!r}")
    return row.effect
