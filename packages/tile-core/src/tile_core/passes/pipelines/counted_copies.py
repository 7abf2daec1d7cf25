"""Which copies instructions of whole waves can do, as far as tensors and tiles tell.

Machines with such instructions count them: a wave waits until no more than a number of its own
are in flight. Layouts are chosen later; they may still be in the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Region, Scope, static_value
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import AnnotateSafeValue, Launch, Pipelined
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.passes.pipelines.asynchronous_copies import may_be_asynchronous
from tile_core.remarks import NotApplicable

COUNTED = "counted_load"
"""The feature of machines whose waves count their copies into shared memory."""

WIDE = "counted_load_16"
"""The feature of those that copy 16 bytes for each lane, too."""

LEAST_BYTES = 4
"""Bytes that such an instruction copies for a lane, on every machine that has it."""

MOST_BYTES = 16
"""Bytes that it copies for a lane where it can copy more."""


def require_counted_loop(
    loop: Pipelined, launch: Launch, facts: ConstraintSet, machine: SimtMachine
) -> None:
    """Refuse a loop some copies of which waves cannot count.

    All do if one does: its loads are counted with the others, and waiting for them, which the
    compiler arranges, would be waiting for all copies.
    """
    env, threads = facts.with_loop(loop.var, loop.start, loop.stop), math.prod(launch.threads)
    stated = {n.buffer for n in nodes_of(launch.body, AnnotateSafeValue)}
    for copy in nodes_of(loop.body, Copy):
        if not copy.src.buffer.scope.is_global or copy.dst.buffer.scope is not Scope.SHARED:
            continue
        try:
            require_counted(copy, threads, machine.warp_size, env)
            if copy.src.buffer in stated:
                raise NotApplicable("the program says what is outside of the tensor")
        except NotApplicable as why:
            what = f"copies of a loop go through registers; {copy.dst.buffer.name}"
            raise NotApplicable(f"{what}: {why.reason}", copy.span) from None


def require_counted(copy: Copy, threads: int, warp_size: int, env: ConstraintSet) -> None:
    """Refuse a copy that `threads` threads cannot do so, as far as tensor and tile tell."""
    source, target = copy.src.buffer, copy.dst.buffer
    if source.scope is not Scope.GLOBAL or target.scope is not Scope.SHARED:
        raise NotApplicable("it does not go from a tensor to a shared tile")
    if copy.loop_layout is not None:
        raise NotApplicable("the program says which thread copies what")
    if source.dtype != target.dtype:
        raise NotApplicable("it converts elements")
    bits = source.dtype.bits
    if source.dtype.is_bool or source.dtype.lanes > 1 or bits not in (8, 16, 32, 64):
        raise NotApplicable(f"elements of {source.dtype} are not what lanes copy")
    if threads % warp_size:
        raise NotApplicable(f"{threads} threads are not whole waves of {warp_size}")
    if not may_be_asynchronous(copy, env):
        raise NotApplicable(
            f"neighbours in the tensor are not known to begin at {LEAST_BYTES} bytes"
        )
    if whole_dimensions(copy.dst) is None:
        raise NotApplicable("it fills a part of a tile")
    nbytes = _bytes_of(copy)
    if nbytes % (warp_size * LEAST_BYTES):
        raise NotApplicable(f"{nbytes} bytes are not {LEAST_BYTES} for each lane of a wave")


def units(copy: Copy, machine: SimtMachine, env: ConstraintSet) -> Iterator[int]:
    """Yield how many bytes a lane may copy at once, the most first: those that fill whole waves."""
    fills_waves = _bytes_of(copy) % (machine.warp_size * MOST_BYTES) == 0
    if machine.has(WIDE) and fills_waves and may_be_asynchronous(copy, env, bits=MOST_BYTES * 8):
        yield MOST_BYTES
    yield LEAST_BYTES


def begun_by_a_wave(
    copies: Iterable[Copy], threads: int, machine: SimtMachine, env: ConstraintSet
) -> int:
    """Return how many instructions of a wave `copies` are, if waves count all of them."""
    widths = ((copy, next(units(copy, machine, env))) for copy in copies)
    return sum(-(-_bytes_of(copy) // (threads * nbytes)) for copy, nbytes in widths)


def _bytes_of(copy: Copy) -> int:
    return math.prod(copy.dst.static_extents or ()) * copy.dst.buffer.dtype.bits // 8


def whole_dimensions(region: Region) -> tuple[int, ...] | None:
    """Return the dimensions of its tile that a region takes whole; the others are at one index.

    None if it takes a part of some, or nobody knows.
    """
    shape, extents = region.buffer.static_shape, region.static_extents
    if shape is None or extents is None:
        return None
    kept: list[int] = []
    for d, (room, extent) in enumerate(zip(shape, extents, strict=True)):
        if extent == room and static_value(region.starts[d]) == 0:
            kept.append(d)
        elif extent != 1:
            return None
    return tuple(kept)
