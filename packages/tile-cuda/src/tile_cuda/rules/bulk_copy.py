"""Copies of boxes by the tensor memory accelerator. PTX ISA, "cp.async.bulk.tensor"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tile_core.errors import InternalError, LayoutError, UnsupportedOnTarget
from tile_core.ir.arith import as_expr, binary, cast
from tile_core.ir.buffer import Buffer, Region, static_value
from tile_core.ir.cache_hints import hint
from tile_core.ir.device_calls import device
from tile_core.ir.expr import AddressOf, BinaryOp, Expr, Var
from tile_core.ir.stmt import Evaluate, If, Seq, Stmt
from tile_core.layout import row_major
from tile_core.layout.engine_boxes import Boxes, boxes_of, layout_in_boxes
from tile_core.machine import SimtMachine
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.copy import Copy
from tile_core.ops.operator import InferContext, InferLevel, LayoutMap
from tile_core.ops.pairing import pair
from tile_core.ops.rule import Rule
from tile_core.passes.specialise.bulk import why_not_bulk
from tile_core.simt.accesses import lower_expr
from tile_core.simt.context import SimtContext
from tile_core.simt.packing import storage_dtype
from tile_core.simt.places import row_major_strides
from tile_core.simt.program import TensorMap
from tile_core.simt.rules.mbarrier import barrier_address
from tile_core.target import Target


def bulk_copy_rules(machine: SimtMachine) -> tuple[Rule[Any], ...]:
    """Return the rules of copies by the engine, where `machine` has it."""

    def rejects(op: BulkCopy | BulkWait, target: Target) -> str | None:
        return None if machine.has("tma") else f"{machine.name} has no tensor memory accelerator"

    def fence(op: FenceAsync, ctx: SimtContext) -> Stmt:
        return Evaluate(device("fence_proxy_async")) if machine.has("tma") else Seq(())

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

    A stretch of bytes has its rows in order.
    """
    tile = op.tile.buffer
    if op.is_stretch and ctx.layout_of(tile) is None and level is InferLevel.STRICT:
        return {tile: row_major(tile.static_shape or ())}
    if level is not InferLevel.COMMON or ctx.layout_of(tile) is not None or ctx.is_viewed(tile):
        return {}
    shape = tile.static_shape
    if shape is None:
        return {}
    bits = storage_dtype(tile.dtype, tile.scope).bits
    return {tile: layout_in_boxes(shape, bits, op.tile.static_extents or shape)}


def lower_bulk_copy(op: BulkCopy, ctx: SimtContext) -> Stmt:
    """Return the instructions that the first of the running threads starts the copy with.

    Before   bulk_copy A[by*128, k*64] -> A_s[slot, 0:128, 0:64], barrier full[slot]
    After    if tid == 0: tma_load<2>(A_s + slot*8192, A_map, full + slot, k*64, by*128)

    Raises
    ------
    UnsupportedOnTarget
        With the reason, if the engine cannot copy these elements.
    """
    if op.is_stretch:
        return _by_the_first(_stretch(op, ctx), ctx)
    tile, tensor = op.tile.buffer, op.tensor
    _must_be_boxes(op, ctx)
    layout = ctx.layout_of(tile)
    bits = storage_dtype(tile.dtype, tile.scope).bits
    try:
        extents = _extents(op.tile)
        boxes = boxes_of(layout, bits, extents)
    except LayoutError as reason:
        raise UnsupportedOnTarget(
            f"{tile.name!r} cannot be copied in bulk: {reason.message}",
            span=op.span,
            hint="leave its layout open, or use T.copy(..., disable_tma=True)",
        ) from None
    axes = _axes(op)
    box = [1] * tensor.buffer.rank
    if axes[-1] is None:
        raise InternalError("the columns of a bulk copy do not move", span=op.span)
    for dim, size in zip(axes, boxes.box, strict=True):
        if dim is not None:
            box[dim] = size
    handle = ctx.tensor_map(_map(tensor.buffer, tuple(reversed(box)), boxes.swizzle, ctx))
    made: list[Stmt] = []
    if op.expects and op.barrier is not None:
        nbytes = math.prod(extents) * bits // 8
        made.append(
            Evaluate(device("mbarrier_expect_tx", barrier_address(op.barrier, ctx), nbytes))
        )
    issues = tuple(_issues(op, boxes, axes, ctx))

    def started(op: BulkCopy) -> Stmt:
        calls = (_call(op, handle, place, coordinates, ctx) for place, coordinates in issues)
        return Seq(tuple(Evaluate(call, span=op.span) for call in calls))

    by_all = op.expects and op.multicast is not None
    made.append(_once_per_cluster(op, started, ctx) if by_all else started(op))
    return _by_the_first(Seq(tuple(made)), ctx)


def _stretch(op: BulkCopy, ctx: SimtContext) -> Stmt:
    """Return the one instruction that copies bytes side by side. PTX ISA, "cp.async.bulk".

    Before   bulk_copy x[bx*128] -> x_s[slot, 0:128], barrier full[slot]
    After    bulk_load(x_s + slot*128, x + bx*128, 512, full + slot)
    """
    tile, tensor = op.tile, op.tensor
    layout = ctx.layout_of(tile.buffer)
    if not layout.same_function(row_major(layout.shape)):
        raise InternalError("the rows of a stretch are not in order", span=op.span)
    nbytes = math.prod(_extents(tile)) * storage_dtype(tile.buffer.dtype, tile.buffer.scope).bits
    accesses = ("r", "w") if op.is_load else ("w", "r")
    there, here = (
        ctx.address(side.buffer, *(_lowered(s, ctx) for s in side.starts), access=access)
        for side, access in zip((tensor, tile), accesses, strict=True)
    )
    wish = hint(op.eviction_policy)
    if op.barrier is not None:
        bar = barrier_address(op.barrier, ctx)
        call = device("bulk_load", *wish, here, there, nbytes // 8, bar)
    else:
        name = "bulk_store" if op.reduce is None else f"bulk_reduce_{op.reduce}"
        call = device(name, *wish, there, here, nbytes // 8)
    return Evaluate(call, span=op.span)


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
    why = why_not_bulk(Copy(op.src, op.dst, span=op.span), ctx.env, outside)
    if why is not None and (op.expects or not op.is_load):
        raise UnsupportedOnTarget(
            f"{op.src.buffer.name!r} cannot be copied to {op.dst.buffer.name!r} in bulk: {why}",
            span=op.span,
            hint="use T.copy, which finds another way",
        )


def _extents(region: Region) -> tuple[int, ...]:
    extents = region.static_extents
    if extents is None:
        raise InternalError("a bulk copy of unknown size", span=region.span)
    return extents


def _axes(op: BulkCopy) -> tuple[int | None, ...]:
    """Return for each dimension of the tile the dimension of the tensor that moves with it."""
    pairing = pair(op.src, op.dst, op.span)
    mine, theirs = (
        (pairing.dst_axes, pairing.src_axes) if op.is_load else (pairing.src_axes, pairing.dst_axes)
    )
    dims = {axis: dim for dim, axis in enumerate(theirs) if axis is not None}
    return tuple(None if axis is None else dims.get(axis) for axis in mine)


def _map(tensor: Buffer, box: tuple[int, ...], swizzle: int, ctx: SimtContext) -> TensorMap:
    dtype = storage_dtype(tensor.dtype, tensor.scope)
    nbytes = dtype.bits // 8
    strides = tensor.strides or row_major_strides(tensor.shape)
    return TensorMap(
        name=f"{tensor.storage.name}_map",
        tensor=tensor.storage,
        dtype=dtype,
        offset=as_expr(0),
        extents=tuple(as_expr(e) for e in reversed(tensor.shape)),
        strides=tuple(as_expr(s * nbytes) for s in reversed(strides[:-1])),
        box=box,
        swizzle=swizzle,
    )


def _issues(
    op: BulkCopy, boxes: Boxes, axes: tuple[int | None, ...], ctx: SimtContext
) -> Iterator[tuple[AddressOf, tuple[Expr, ...]]]:
    """Yield for each box its place in shared memory and its coordinates, innermost first."""
    tile, tensor = op.tile, op.tensor
    starts = [_lowered(s, ctx) for s in tile.starts]
    origin = [_lowered(s, ctx) for s in tensor.starts]
    for index in _indices(boxes.parts):
        steps = [k * size for k, size in zip(index, boxes.box, strict=True)]
        here = [start + step for start, step in zip(starts, steps[:-2], strict=False)]
        here += starts[len(here) :]
        where = list(origin)
        for dim, step in zip(axes, steps, strict=True):
            if dim is not None and step:
                where[dim] = where[dim] + step
        row, column = (0, *index)[-2:]
        base = ctx.address(tile.buffer, *here, access="w" if op.is_load else "r")
        moved = base.indices[0] + (row * boxes.row_step + column * boxes.column_step)
        yield (
            AddressOf(base.buffer, (moved,), base.access),
            tuple(cast(as_expr(c), "int32") for c in reversed(where)),
        )


def _indices(extents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for flat in range(math.prod(extents)):
        index = []
        for extent in reversed(extents):
            index.append(flat % extent)
            flat //= extent
        yield tuple(reversed(index))


def _lowered(start: Any, ctx: SimtContext) -> Any:
    known = static_value(start)
    return lower_expr(start, ctx) if known is None else known


def _call(
    op: BulkCopy, handle: Var, place: AddressOf, coordinates: tuple[Expr, ...], ctx: SimtContext
) -> Expr:
    mode = (len(coordinates), *hint(op.eviction_policy))
    if op.barrier is None:
        name = "tma_store" if op.reduce is None else f"tma_reduce_{op.reduce}"
        return device(name, *mode, handle, place, *coordinates)
    bar = barrier_address(op.barrier, ctx)
    if op.multicast is not None:
        mask = lower_expr(op.multicast, ctx)
        return device("tma_load_multicast", *mode, place, handle, bar, mask, *coordinates)
    return device("tma_load", *mode, place, handle, bar, *coordinates)


def lower_bulk_wait(op: BulkWait, ctx: SimtContext) -> Stmt:
    """Let the thread that started the copies wait for them."""
    name = "tma_store_wait_read" if op.is_read_enough else "tma_store_wait"
    made = (Evaluate(device("tma_store_commit")), Evaluate(device(name, op.pending)))
    return _by_the_first(Seq(made), ctx)
