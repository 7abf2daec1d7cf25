"""Whether copies are worth threads of their own, and which of them these can make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from tile_core.ir.buffer import Scope
from tile_core.ir.node import Node, nodes_of
from tile_core.ir.stmt import Alloc, Launch, Parallel, Pipelined
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.passes.warp_specialisation.circular_buffers import (
    CircularBuffer,
    CircularBuffers,
    tile_of,
)
from tile_core.remarks import NotApplicable, remark

FEW = 4
"""What others bring by loads and stores is at most this part of what runs ahead of its use."""

MOST_PIECES = 128
"""Copies that a lane of a warp issues in an iteration, at most.

A warp issues one in about ten cycles, most of which are for its address. Three warps that take
turns so need some 450 cycles for the pieces of an iteration, and do nothing else; a product of
128 x 128 x 64 takes 500. Of 16 bytes, so many are 64 KiB: two tiles of 128 x 128 numbers of 16
bits. What needs more is issued by the consumers, who are more.
"""

SPARE = 1024
"""Bytes of shared memory for barriers, and between tiles."""


def asks_for_overlap(node: Node) -> TypeGuard[Pipelined]:
    """Whether copies of a loop may have producers."""
    return isinstance(node, Pipelined) and node.num_stages >= 2 and not node.order


def fitting(launch: Launch, found: CircularBuffers, shared_bytes: int) -> CircularBuffers:
    """Return the circular buffers that threads and memory suffice for: large ones give way."""
    for choice in (found, found.with_small_tiles()):
        if _fits_shared_memory(launch, choice, shared_bytes):
            return choice
    return found.in_bulk()


def _fits_shared_memory(launch: Launch, found: CircularBuffers, shared_bytes: int) -> bool:
    """Whether what threads fill in advance is little compared with what they wait for, and fits."""
    if sum(circular.stored_nbytes for circular in found.buffers) * FEW > _bytes_ahead(
        found.buffers
    ):
        return False
    homes = {circular.home for circular in found.buffers}
    if any(sum(r.pieces for r in found.buffers if r.home is h) > MOST_PIECES for h in homes):
        return False
    counts = {tile: circular.count for circular in found.buffers for tile in circular.tiles}
    tiles = {n.buffer for n in nodes_of(launch.body, Alloc)}
    shared = [b for b in tiles if b.scope is Scope.SHARED]
    return sum((b.nbytes or 0) * counts.get(b, 1) for b in shared) <= shared_bytes - SPARE


def require_worth(
    launch: Launch, found: CircularBuffers, is_asynchronous: Callable[[Gemm], bool]
) -> None:
    """Refuse producers that are not worth it.

    Most bytes of the pipelined loops must be theirs. Where the copy engine copies none of them,
    warps must be better at it than the consumers are: these are more, and take their registers
    along. They are better where MMAs are asynchronous. Consumers who copy meet in each iteration,
    and wait for their MMAs before; those who do not have MMAs of one iteration in flight in the
    next, or during their own work: see `overlap_gemms`.
    """
    loops = [n for n in nodes_of(launch.body, Pipelined) if asks_for_overlap(n)]
    inside = {copy for loop in loops for copy in nodes_of(loop, Copy)}
    left = [(copy, why) for copy, why in found.left if copy in inside]
    ahead = [circular for circular in found.buffers if circular.runs_ahead]
    by_engine = any(circular.in_bulk for circular in ahead)
    beside = any(is_asynchronous(n) for loop in loops for n in nodes_of(loop, Gemm))
    if not ahead or not (by_engine or beside):
        reasons = [why for _, why in (*left, *found.by_threads)]
        raise NotApplicable(reasons[0] if reasons else "no copy can run ahead")
    if sum(_nbytes(copy) for copy, _ in left) * FEW > _bytes_ahead(found.buffers):
        copy, why = max(left, key=lambda item: _nbytes(item[0]))
        raise NotApplicable(f"{tile_of(copy).name!r} cannot be copied in bulk: {why}")


def _bytes_ahead(circular_buffers: tuple[CircularBuffer, ...]) -> int:
    """Return the bytes of an iteration that are brought in advance, and that no registers hold."""
    return sum(
        circular.nbytes - circular.stored_nbytes
        for circular in circular_buffers
        if circular.runs_ahead
    )


def _nbytes(copy: Copy | Parallel) -> int:
    return tile_of(copy).nbytes or 0


def tell_of_left(found: CircularBuffers) -> None:
    """Tell why copies of a launch with producers are not made by the copy engine."""
    for who, copies in (
        ("producer warps", found.by_threads), ("the threads that use it", found.left),
    ):  # fmt: skip
        for copy, why in copies:
            told = f"{tile_of(copy).name!r} is copied by {who}: {why}"
            remark("missed", "specialise_warps", told, copy.span)
