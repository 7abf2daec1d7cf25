"""Copies of boxes by the tensor memory accelerator. PTX ISA, "cp.async.bulk.tensor"."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from tile_core.errors import LayoutError, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.device import device
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import Evaluate, If, Seq, Stmt
from tile_core.layout import Layout, box_spans, boxed_operand, row_major
from tile_core.layout.copy_engine_boxes import (
    Boxes,
    Part,
    boxes_of,
    layout_for_parts,
    layout_in_boxes,
    suits,
)
from tile_core.machine import SimtMachine
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.copy import Copy
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.passes.warp_specialisation.bulk_copies import is_part, require_boxes, starts_of
from tile_core.records import replace
from tile_core.remarks import NotApplicable
from tile_core.simt.context import SimtContext
from tile_core.simt.lower_accesses import lower_expr
from tile_core.simt.rules.mbarrier import barrier_address
from tile_core.simt.subbyte_access import storage_dtype
from tile_core.target import Target
from tile_cuda.rules.bulk_calls import box_copies, contiguous_copy_call, extents_of


def bulk_copy_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the rules of copies by the copy engine, where `machine` has it."""

    def rejects(op: BulkCopy | BulkWait, target: Target) -> str | None:
        if machine.has("copy_engine"):
            return None
        return f"{machine.name} has no tensor memory accelerator"

    def fence(op: FenceAsync, ctx: SimtContext) -> Stmt:
        return Evaluate(device("fence_proxy_async")) if machine.has("copy_engine") else Seq(())

    return (
        Rule(
            name="cuda.bulk_copy",
            op=BulkCopy,
            lower=lower_bulk_copy,
            infer_layout=infer_bulk_copy,
            rejects=rejects,
        ),
        Rule(name="cuda.bulk_wait", op=BulkWait, lower=lower_bulk_wait, rejects=rejects),
        Rule(name="cuda.fence_async", op=FenceAsync, lower=fence),
    )


def infer_bulk_copy(op: BulkCopy, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return the widest layout in boxes for a tile that nobody else has a demand on.

    Where copies fill rows or columns of it in part, it is one that suits all copies. A copy of
    contiguous bytes has its rows in order.
    """
    tile = op.tile.buffer
    if op.is_1d and ctx.layout_of(tile) is None and level is InferLevel.STRICT:
        return {tile: row_major(tile.static_shape or ())}
    if level is not InferLevel.COMMON or ctx.layout_of(tile) is not None or ctx.is_viewed(tile):
        return {}
    shape = tile.static_shape
    if shape is None:
        return {}
    bits = storage_dtype(tile.dtype, tile.scope).bits
    parts = parts_of(tile, ctx)
    if parts:
        return {tile: layout_for_parts(shape, bits, parts)}
    return {tile: layout_in_boxes(shape, bits, op.tile.static_extents or shape)}


def lower_bulk_copy(op: BulkCopy, ctx: SimtContext) -> Stmt:
    """Return the instructions that the first of the running threads starts the copy with.

    Before   bulk_copy A[by*128, k*64] -> A_s[slot, 0:128, 0:64], barrier full[slot]
    After    if tid == 0: tma_load<2>(A_s + slot*8192, A_map, full + slot, k*64, by*128)

    Raises
    ------
    UnsupportedOnTarget
        With the reason, if the copy engine cannot copy these elements.
    """
    tile = op.tile.buffer
    bits = storage_dtype(tile.dtype, tile.scope).bits
    made: list[Stmt] = []
    if op.expects and op.barrier is not None:
        nbytes = math.prod(extents_of(op.tile)) * bits // 8
        made.append(
            Evaluate(device("mbarrier_expect_tx", barrier_address(op.barrier, ctx), nbytes))
        )
    if op.is_1d:
        made.append(Evaluate(contiguous_copy_call(op, ctx), span=op.span))
        return _by_the_first(made[0] if len(made) == 1 else Seq(tuple(made)), ctx)
    _must_be_boxes(op, ctx)
    layout = ctx.layout_of(tile)
    try:
        boxes = _boxes(op, layout, bits, ctx)
    except LayoutError as reason:
        raise UnsupportedOnTarget(
            f"{tile.name!r} cannot be copied in bulk: {reason.message}",
            span=op.span,
            hint="leave its layout open, or use T.copy(..., disable_tma=True)",
        ) from None
    copies = box_copies(op, boxes, ctx)

    def started(op: BulkCopy) -> Stmt:
        return Seq(tuple(Evaluate(call, span=op.span) for call in copies.calls(op, ctx)))

    by_all = op.expects and op.multicast is not None
    made.append(_once_per_cluster(op, started, ctx) if by_all else started(op))
    return _by_the_first(Seq(tuple(made)), ctx)


def _boxes(op: BulkCopy, layout: Layout, bits: int, ctx: SimtContext) -> Boxes:
    """Return the boxes of the tile, or of the part of it, that `op` copies."""
    extents, starts = extents_of(op.tile), starts_of(op.tile, ctx.env.multiple_of)
    if is_part(op.tile.buffer, extents):
        return boxes_of(layout, bits, extents, starts)
    try:
        return boxes_of(layout, bits, extents)
    except LayoutError:
        with suppress(LayoutError):
            return boxes_of(layout, bits, extents, starts)
        raise


def _by_the_first(stmt: Stmt, ctx: SimtContext) -> Stmt:
    """Return `stmt` for the first of the running threads, also where a program names threads.

    Such a program may let that thread arrive behind the copy, so it must be none that the
    machine elects instead (`tile_core.simt.elect_issuer`).
    """
    if ctx.threads == 1:
        return stmt
    if ctx.by_thread:
        return If(binary(BinaryOp.LT, ctx.thread, 1), stmt)
    return If(binary(BinaryOp.EQ, ctx.thread, 0), stmt)


def _once_per_cluster(op: BulkCopy, started: Callable[[BulkCopy], Stmt], ctx: SimtContext) -> Stmt:
    """Let the first block of the mask fetch for all of them, and others for themselves.

    Before   bulk_copy A -> A_s, multicast 3
    After    if cluster_rank() == 0: tma_load_multicast(…, 3)
             else if not 3 >> cluster_rank() & 1: tma_load(…)
    """
    mask = lower_expr(as_expr(op.multicast), ctx)
    rank, number = device("cluster_rank"), static_value(mask)
    if number is not None:
        first = binary(BinaryOp.EQ, rank, (number & -number).bit_length() - 1)
    else:
        lowest = binary(BinaryOp.BITAND, mask, binary(BinaryOp.SUB, 0, mask))
        first = binary(BinaryOp.EQ, lowest, binary(BinaryOp.SHL, 1, rank))
    if number == (1 << math.prod(ctx.launch.cluster)) - 1:
        return If(first, started(op))
    named = binary(BinaryOp.BITAND, binary(BinaryOp.SHR, mask, rank), 1)
    alone = started(replace(op, multicast=None))
    return If(first, started(op), If(binary(BinaryOp.EQ, named, 0), alone))


def _must_be_boxes(op: BulkCopy, ctx: SimtContext) -> None:
    outside = ctx.safe_values if op.is_load else {}
    if not (op.expects or not op.is_load):
        return
    try:
        require_boxes(Copy(op.src, op.dst, span=op.span), ctx.env, outside, asked=True)
    except NotApplicable as why:
        what = f"{op.src.buffer.name!r} cannot be copied to {op.dst.buffer.name!r} in bulk"
        raise UnsupportedOnTarget(
            f"{what}: {why.reason}", span=op.span, hint="use T.copy, which finds another way"
        ) from None


def lower_bulk_wait(op: BulkWait, ctx: SimtContext) -> Stmt:
    """Let the thread that started the copies wait for them."""
    name = "bulk_store_wait_read" if op.is_read_enough else "bulk_store_wait"
    made = (Evaluate(device("bulk_store_commit")), Evaluate(device(name, op.pending)))
    return _by_the_first(Seq(made), ctx)


def parts_of(tile: Buffer, ctx: InferContext) -> tuple[Part, ...]:
    """Return the parts of `tile` that are bulk copies; nothing if rows and columns are whole."""
    parts = {
        (extents, starts_of(user.tile, partial(ctx.multiple_at, user)))
        for user in ctx.users_of(tile)
        if isinstance(user, BulkCopy) and not user.is_1d and user.tile.buffer is tile
        if (extents := user.tile.static_extents) is not None
    }
    is_cut = any(is_part(tile, extents) for extents, _ in parts)
    return tuple(sorted(parts, key=repr)) if is_cut else ()


def span_for_parts(tile: Buffer, bits: int, ctx: InferContext) -> int | None:
    """Return how wide boxes of `tile` may be for its copies in part; None if that is no matter.

    Products read boxes of any width: what they prefer is the widest.
    """
    parts = parts_of(tile, ctx)
    shape = tile.static_shape
    if not parts or shape is None:
        return None
    spans = (s for s in box_spans(shape, bits) if suits(boxed_operand(shape, bits, s), bits, parts))
    return next(spans, None)
