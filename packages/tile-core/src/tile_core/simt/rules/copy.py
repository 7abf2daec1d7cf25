"""Copies of tiles as programs of one thread, at once or while the threads do something else."""

from __future__ import annotations

from tile_core.errors import LayoutError, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.device import device
from tile_core.ir.device_calls import COUNTED_LOAD, PREFIX
from tile_core.ir.expr import Call
from tile_core.ir.gpu_intrinsics import PREFER_ASYNC_COPY, PREFER_COPY_ENGINE
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Evaluate, Seq, Stmt
from tile_core.layout import Fragment
from tile_core.layout.swizzle import staged_rows
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.copy import Copy
from tile_core.ops.parallel_form import as_parallel
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap
from tile_core.passes.pipelines.counted_copies import COUNTED
from tile_core.records import replace
from tile_core.remarks import NotApplicable, remark
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_element_wise
from tile_core.simt.partition import partition
from tile_core.simt.rules.counted_copy import lower_counted
from tile_core.simt.rules.staged_copy import (
    is_half_private,
    lower_by_memory,
    lower_half_private,
    lower_layout_conversion,
    needs_whole_bytes,
)
from tile_core.simt.subbyte_access import storage_dtype
from tile_core.simt.vectorise import FEATURE, async_lanes
from tile_core.target import Target


def lower_copy(op: Copy, ctx: SimtContext) -> Stmt:
    """Return the part of one thread in a copy, in the way the program asks for.

    Accesses of a tensor that move 4, 8 or 16 bytes say to the cache the hint of the program.

    Raises
    ------
    UnsupportedOnTarget
        If it asks for asynchronous instructions that this copy cannot be made of.
    """
    ctx = replace(ctx, eviction=op.eviction_policy)
    if op.is_async:
        return lower_async(op, ctx)
    if op.prefer_instruction == PREFER_ASYNC_COPY:
        return lower_at_once(op, ctx)
    if ctx.places.layouts.is_exchanged(op):
        return lower_layout_conversion(op, ctx)
    if is_half_private(op):
        return lower_half_private(op, ctx)
    if needs_whole_bytes(op):
        return lower_by_memory(op, ctx)
    return lower_element_wise(op, ctx)


def why_no_copy(op: Copy, target: Target) -> str | None:
    """Return why threads cannot copy as the program asks for."""
    if op.prefer_instruction == PREFER_COPY_ENGINE:
        return "the tensor memory accelerator copies between tensors and shared tiles only"
    return None


COPIES = (PREFIX + FEATURE, PREFIX + COUNTED_LOAD)
"""Calls that begin a copy; the last argument of each says whether there is anything to copy."""


def lower_async(op: Copy, ctx: SimtContext) -> Stmt:
    """Return the part of one thread in an asynchronous copy.

    Before   copy A[bx*64:+64, k*32:+32], T, is_async
    After    for r in unrolled(2):
                 async_copy<16>(T + …, A + …, bx*64 + … < M)

    Each copy moves 16, 8 or 4 bytes that are neighbours, and aligned to their size, on both
    sides; the predicate is false outside of the tensor, where zeros are written. Where that
    cannot be shown, elements are converted, or the safe value is not zero, the copy goes
    through registers, at once: whoever waits for it then finds it finished. Machines whose waves
    copy, and count their copies, do as `counted_copy` says.
    """
    if ctx.machine.has(COUNTED):
        try:
            return lower_counted(op, ctx)
        except NotApplicable as why:
            told = f"this copy is synchronous, by way of registers: {why.reason}"
            remark("missed", "select_rule", told, op.span)
    return partition(as_parallel(op), ctx.places.layouts.loop_of(op), ctx, async_lanes)


def lower_commit(op: CopyCommit, ctx: SimtContext) -> Stmt:
    """Return the end of a group of copies; nothing where copies are done when they return."""
    if not _has_groups(ctx):
        return Seq(())
    return Evaluate(device("async_copy_commit"), span=op.span)


def lower_wait(op: CopyWait, ctx: SimtContext) -> Stmt:
    """Return the wait until at most `pending` groups are in flight; barriers come apart.

    Where waves count copies, `tile_core.simt.wait_counts` finds out how many those are.
    """
    if not _has_groups(ctx):
        return Seq(())
    return Evaluate(device("async_copy_wait", op.pending), span=op.span)


def _has_groups(ctx: SimtContext) -> bool:
    return ctx.machine.has(FEATURE) or ctx.machine.has(COUNTED)


def lower_at_once(op: Copy, ctx: SimtContext) -> Stmt:
    """Return a copy by asynchronous instructions that is finished when it returns."""
    made = lower_async(op, ctx)
    if not any(n.function in COPIES for n in nodes_of(made, Call)):
        raise UnsupportedOnTarget(
            f"this copy cannot use asynchronous instructions of {ctx.machine.name}",
            span=op.span,
            hint="they move 4, 8 or 16 aligned neighbours in bytes from a tensor to a shared "
            "tile, unchanged; leave prefer_instruction out",
        )
    return Seq(
        (made, Evaluate(device("async_copy_commit")), Evaluate(device("async_copy_wait", 0)))
    )


CHUNK_BITS = 128
"""What one thread reads and stores at once."""


def infer_copy(op: Copy, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return a layout without bank conflicts for a tile that a matrix fragment is copied to.

    Only where nobody else wants one: copies alone touch the tile, and no view of it exists.
    Fragments whose threads hold 16 bytes of a row side by side need nothing but rows in order,
    unless the next thread has those of the next row.
    """
    tile = op.dst.buffer
    if level is not InferLevel.FREE or tile.scope is not Scope.SHARED:
        return {}
    held = ctx.layout_of(op.src.buffer) if op.src.buffer.scope is Scope.FRAGMENT else None
    if not isinstance(held, Fragment) or not _is_open(tile, ctx) or tile.static_shape is None:
        return {}
    bits = storage_dtype(tile.dtype, tile.scope).bits
    if _holds_chunks(held, CHUNK_BITS // bits) and not goes_down(held):
        return {}
    try:
        return {tile: staged_rows(tile.static_shape, bits)}
    except LayoutError:
        return {}


def _is_open(tile: Buffer, ctx: InferContext) -> bool:
    return (
        ctx.layout_of(tile) is None
        and not ctx.is_viewed(tile)
        and all(isinstance(user, Copy) for user in ctx.users_of(tile))
    )


def _holds_chunks(held: Fragment, count: int) -> bool:
    """Whether the thread that holds the first element has its row's first `count` of them."""
    if held.rank < 2 or held.shape[-1] < count:
        return True
    first = (0,) * (held.rank - 1)
    return held.owners(*first, 0) == held.owners(*first, count - 1)


def goes_down(held: Fragment) -> bool:
    """Whether the thread after that of the first element has the one below it.

    Examples
    --------
    >>> goes_down(Fragment((8, 4), lambda i, j: (i, j)))
    True
    """
    if held.rank != 2 or held.shape[0] < 2:
        return False
    return held.owners(1, 0)[0] == held.owners(0, 0)[0] + 1
