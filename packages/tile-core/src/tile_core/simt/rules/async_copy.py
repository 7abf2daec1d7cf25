"""Copies from tensors into shared tiles that go on while the threads do something else."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.device import device
from tile_core.ir.device_calls import COUNTED_LOAD, PREFIX
from tile_core.ir.expr import Call
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Evaluate, Seq, Stmt
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.copy import Copy
from tile_core.ops.parallel_form import as_parallel
from tile_core.passes.pipelines.counted_copies import COUNTED
from tile_core.remarks import NotApplicable, remark
from tile_core.simt.context import SimtContext
from tile_core.simt.partition import partition
from tile_core.simt.rules.counted_copy import lower_counted
from tile_core.simt.vectorise_async_copies import FEATURE, async_lanes

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
    """Return a copy by asynchronous instructions that is finished when it returns.

    Raises
    ------
    UnsupportedOnTarget
        If the copy cannot be made of such instructions.
    """
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
