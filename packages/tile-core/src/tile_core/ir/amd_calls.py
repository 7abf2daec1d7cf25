"""Functions of the device header for AMD's matrix and copy instructions.

A wave of AMD's machines has 64 lanes that run together. Its copies from tensors straight into
shared memory are counted: a wave waits until no more than a number of its own are under way, the
youngest. Source: AMD "CDNA3 Instruction Set Architecture", "Memory Buffer Instructions" and
"S_WAITCNT".
"""

from __future__ import annotations

from tile_core.ir.device_call import DeviceCall
from tile_core.ir.effect import Effect

_ASYNC = Effect.READS | Effect.WRITES | Effect.STATE

LDS_LOAD, LDS_WAIT, UNIFORM = "lds_load", "lds_wait", "uniform"

MOST_UNDER_WAY = 63
"""The largest number a wave can wait for: the counter has six bits."""

_COPIES = (
    # <BYTES>(shared, tensor, index, predicate), by all lanes of a wave: lane l's BYTES, 4 or 16,
    # go to ``shared + l * BYTES``, from element `index` behind `tensor`; zeros where the
    # predicate is false. `shared` and `tensor` are the same in all lanes of a wave.
    DeviceCall(LDS_LOAD, 1, effect=_ASYNC | Effect.WARP),
    DeviceCall(LDS_WAIT, 1, effect=_ASYNC),  # <N>(): at most N lds_loads of the wave under way
    # (x): the value of the wave's first lane, where all its lanes have the same.
    DeviceCall(UNIFORM, result="int32", effect=Effect.NONE),
)

KEEP_ORDER = "keep_order"
BAR_READY, BAR_SYNC, BAR_ARRIVE = "bar_ready", "bar_sync_counted", "bar_arrive_counted"

_PRODUCT = Effect.READS | Effect.WRITES | Effect.WARP
_PRODUCTS = tuple(
    # <PACK, DS = 1, AS = 1, BS = 1>(d, a, b), by all lanes of a wave: d += a @ b, by PACK
    # instructions of this shape that follow each other along K. Registers are in the order of
    # `tile_hip.atoms`, every DS-th of d, AS-th of a, BS-th of b; one name per shape, overloaded on
    # the element types.
    DeviceCall(f"mfma_{shape}", 4, effect=_PRODUCT, operands=3)
    for shape in (
        "32x32x2", "32x32x4", "32x32x8", "32x32x16", "32x32x32",
        "16x16x4", "16x16x8", "16x16x16", "16x16x32", "16x16x64",
    )
)  # fmt: skip

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

AMD_CALLS: tuple[DeviceCall, ...] = (*_COPIES, *_PRODUCTS, *_BARRIERS, *_FENCES)
"""Copies into shared memory that are counted, products of waves, and barriers for some of them."""
