"""Functions of the device header for machines whose warps count their copies.

The lanes of a warp, 64 of them perhaps, start such a copy together, from a tensor straight into
shared memory. Nothing names it: a warp waits until no more than a number of its own are in flight,
the youngest.
"""

from __future__ import annotations

from tile_core.ir.device_call import DeviceCall
from tile_core.ir.effect import Effect

_ASYNC = Effect.READS | Effect.WRITES | Effect.STATE

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

_BOTH = Effect.READS | Effect.WRITES
_BARRIERS = (
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

COUNTED_CALLS: tuple[DeviceCall, ...] = (*_COPIES, *_BARRIERS, *_FENCES)
"""Copies into shared memory that are counted, and barriers in memory for some of the waves."""
