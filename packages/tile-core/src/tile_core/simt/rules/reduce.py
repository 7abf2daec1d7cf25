"""Reductions among the threads that hold a tile: registers, then lanes, then warps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tile_core.errors import ShapeMismatch
from tile_core.ir.arith import as_expr, binary, call, cast, const, select
from tile_core.ir.buffer import Buffer, Scope, static_value, whole
from tile_core.ir.device_calls import device
from tile_core.ir.expr import BinaryOp, Call, Expr, Extent, Load, Var
from tile_core.ir.stmt import Alloc, Evaluate, For, If, Let, LoopKind, Parallel, Seq, Stmt, Store
from tile_core.layout import Fragment
from tile_core.layout.images import reduced_fragment
from tile_core.layout.loop import LoopLayout, planned
from tile_core.layout.loop_inverse import loop_over
from tile_core.ops.operator import InferContext, InferLevel, LayoutMap
from tile_core.ops.reduce import Reduce
from tile_core.ops.rule import Rule
from tile_core.ops.serial.loops import accumulator
from tile_core.ops.serial.reduce import combine, expand_reduce, expand_reduce_at
from tile_core.simt.accesses import lower_store
from tile_core.simt.context import SimtContext
from tile_core.simt.exchange import Exchange, exchange_along
from tile_core.simt.holders import held, is_dense, slot_map
from tile_core.simt.partition import partition
from tile_core.simt.staging import by_each_thread, copied_in


def infer_reduce(op: Reduce, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Give the result to the threads that hold its row, once the source is known."""
    source = ctx.layout_of(op.src.buffer)
    target = op.dst.buffer
    if (
        level is InferLevel.STRICT
        or target.scope is not Scope.FRAGMENT
        or not (op.src.is_whole and op.dst.is_whole)
        or target.static_shape is None
        or ctx.layout_of(target) is not None
    ):
        return {}
    if isinstance(source, Fragment):
        return {target: reduced_fragment(source, op.dim).reshape(target.static_shape)}
    if level is InferLevel.FREE and op.src.buffer.scope is not Scope.FRAGMENT and ctx.threads:
        return {target: planned(target.static_shape, ctx.threads, holds_tiles=True).fragment}
    return {}


def lower_reduce(op: Reduce, ctx: SimtContext) -> Stmt:
    """Return the reduction as each thread runs it.

    Before   reduce sum scores, dim=1 -> total
    After    part[r] over the thread's own registers;  part[r] += shuffled part[r];
             across warps: part to shared memory, barrier, sum of the warps' parts, barrier

    The parts of a row that one thread holds are combined first; lanes then exchange by
    shuffles, warps through shared memory. Replicas of an element count once. Where the
    layout is too irregular for that the tile goes through shared memory.
    """
    plan = _plan(op, ctx)
    return _through_memory(op, ctx) if plan is None else _among_threads(op, plan, ctx)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The rows of a tile in registers.

    Parameters
    ----------
    source, row
        Who holds the tile, and who its rows.
    slots
        For each register of the source, that of its row.
    exchange
        How the threads of a row bring their parts together.
    """

    source: Fragment
    row: Fragment
    slots: tuple[int, ...]
    exchange: Exchange


def _through_memory(op: Reduce, ctx: SimtContext) -> Stmt:
    """Let the threads of the result read the rows, from memory or from a copy in it.

    What each thread has for itself, each of them computes.
    """
    source, shape = op.src, op.src.static_extents
    before: list[Stmt] = []
    after: list[Stmt] = []
    if source.buffer.scope.is_spread:
        if shape is None:
            raise ShapeMismatch(
                "a reduction of registers needs extents known at compile time",
                span=op.span,
                hint="reduce a tile of fixed extents",
            )
        tile = ctx.scratch_tile("rows", shape, str(source.buffer.dtype))
        before = [copied_in(source, tile, tile.dtype, ctx), Evaluate(device("sync"))]
        after = [Evaluate(device("sync"))]
        source = whole(tile)
    if op.dst.buffer.scope.is_thread_private:
        each = by_each_thread(expand_reduce(replace(op, src=source)), ctx)
        return Seq((*before, each, *after))
    kept = [n for axis, n in enumerate(op.src.extents) if axis != op.dim]
    points = tuple(ctx.fresh_var(f"i{axis}") for axis in range(max(1, len(kept))))
    body = expand_reduce_at(replace(op, src=source), points)
    nest = Parallel(points, tuple(as_expr(n) for n in kept or (1,)), body, span=op.span)
    return Seq((*before, partition(nest, _loop_of_rows(op, kept, ctx), ctx), *after))


def _loop_of_rows(op: Reduce, kept: list[Extent], ctx: SimtContext) -> LoopLayout | None:
    """Let threads that hold a row compute it; rows in memory go round the threads."""
    shape = [static_value(n) for n in kept] or [1]
    box = tuple(n for n in shape if n is not None)
    if op.dst.buffer.scope.is_spread and op.dst.is_whole:
        return loop_over(ctx.fragment_of(op.dst.buffer).reshape(box))
    return planned(box, ctx.threads) if len(box) == len(shape) else None


def _plan(op: Reduce, ctx: SimtContext) -> _Plan | None:
    target = op.dst.buffer
    if op.src.buffer.scope is not Scope.FRAGMENT or not op.src.is_whole:
        return None
    if target.scope.is_thread_private:
        return None
    source = ctx.fragment_of(op.src.buffer)
    row = reduced_fragment(source, op.dim)
    slots = slot_map(source, row, op.dim)
    exchange = exchange_along(source, op.dim, ctx.machine.warp_size)
    if slots is None or exchange is None or not (is_dense(source) and is_dense(row)):
        return None
    partial = ctx.threads % ctx.machine.warp_size
    if partial % (2 * max(exchange.lane_masks, default=0) or 1):
        return None  # some lanes would exchange with lanes that are no threads
    if target.scope is Scope.FRAGMENT:
        if not op.dst.is_whole:
            return None
        wanted = ctx.fragment_of(target).reshape(row.shape)
        if not (row.covers(wanted) and is_dense(wanted)):
            return None
    return _Plan(source, row, slots, exchange)


def _among_threads(op: Reduce, plan: _Plan, ctx: SimtContext) -> Stmt:
    wide = accumulator("part", op.dst.buffer.dtype).dtype
    part = ctx.registers("part", plan.row.slots, str(wide))
    identity = const(op.kind.identity(op.dst.buffer.dtype), wide)
    slot = ctx.fresh_var("r")
    return Seq(
        (
            Alloc(part),
            _unrolled(slot, plan.row.slots, Store(part, (slot,), identity)),
            _by_holders(plan.source, _fold(op, plan, part, ctx), ctx),
            *_across_lanes(op, plan, part, ctx),
            *_across_warps(op, plan, part, ctx),
            _deliver(op, plan, part, ctx),
        )
    )


def _fold(op: Reduce, plan: _Plan, part: Buffer, ctx: SimtContext) -> Stmt:
    """Combine the registers of one thread, each into the register of its row."""
    slot = ctx.fresh_var("i")
    registers = ctx.places.flat(op.src.buffer)
    row = plan.row.slot_expr()
    where = held(plan.source, ctx.thread, slot).coords
    kept = [x for axis, x in enumerate(where) if axis != op.dim]
    at = as_expr(_at(plan.row, row, kept))
    if len(set(plan.slots)) == 1:
        at = as_expr(plan.slots[0])
    value = cast(cast(Load(registers, (slot,)), op.dst.buffer.dtype), part.dtype)
    if op.kind.takes_magnitudes:
        value = call("abs", value)
    step = Store(part, (at,), _combined(op, Load(part, (at,)), value))
    return _unrolled(slot, plan.source.slots, step)


def _at(fragment: Fragment, row: Any, coords: list[Expr]) -> Any:
    index = fragment.forward_index(*coords) if coords else (0,)
    total: Any = 0
    for x, extent in zip(index, fragment.index_shape, strict=False):
        total = total * extent + x
    return total


def _across_lanes(op: Reduce, plan: _Plan, part: Buffer, ctx: SimtContext) -> list[Stmt]:
    """Exchange with the lanes that hold other parts of the same rows, one bit at a time."""
    steps: list[Stmt] = []
    for mask in plan.exchange.lane_masks:
        slot = ctx.fresh_var("r")
        mine = Load(part, (slot,))
        theirs = Call("shfl_xor", (mine, as_expr(mask), as_expr(ctx.machine.warp_size)), part.dtype)
        steps.append(_unrolled(slot, plan.row.slots, _with_theirs(op, mine, theirs, ctx)))
    return steps


def _with_theirs(op: Reduce, mine: Load, theirs: Expr, ctx: SimtContext) -> Stmt:
    """Combine with another lane's part, which all lanes ask for once, whatever they hold."""
    name: tuple[Stmt, ...] = ()
    if op.nan_propagate:
        heard = ctx.fresh_var("theirs", str(mine.dtype))
        name, theirs = (Let(heard, theirs),), heard
    return Seq((*name, Store(mine.buffer, mine.indices, _combined(op, mine, theirs))))


def _across_warps(op: Reduce, plan: _Plan, part: Buffer, ctx: SimtContext) -> list[Stmt]:
    """Bring the parts of several warps together through shared memory.

    One lane of each group that agrees after the shuffles writes; every thread reads all parts
    of its rows, so the order of combination is the same for all of them.
    """
    exchange, rows = plan.exchange, math.prod(plan.row.shape)
    if exchange.warp_count == 1:
        return []
    space = ctx.workspace("parts", exchange.warp_count * rows, str(part.dtype))
    slot, other = ctx.fresh_var("r"), ctx.fresh_var("w")
    place = held(plan.row, ctx.thread, slot)
    flat = _flat(place.coords, plan.row.shape)
    mine = ctx.warp // exchange.warp_step % exchange.warp_count
    replica = held(plan.source, ctx.thread, _first_slot(plan, slot)).replica
    speaks = binary(
        BinaryOp.AND,
        binary(BinaryOp.EQ, ctx.lane & exchange.lane_bits, 0),
        binary(BinaryOp.EQ, replica, 0),
    )
    handed = Store(space, (mine * rows + flat,), Load(part, (slot,)))
    write = _by_holders(plan.source, If(speaks, handed), ctx)
    total = Seq(
        (
            Store(part, (slot,), Load(space, (flat,))),
            _unrolled(
                other,
                exchange.warp_count,
                Store(
                    part,
                    (slot,),
                    _combined(op, Load(part, (slot,)), Load(space, (other * rows + flat,))),
                ),
                start=1,
            ),
        )
    )
    barrier = Evaluate(device("sync"))
    return [
        _unrolled(slot, plan.row.slots, write),
        barrier,
        _unrolled(slot, plan.row.slots, total),
        barrier,
    ]


def _first_slot(plan: _Plan, number: Expr) -> Expr:
    """Return a register of the source that belongs to register `number` of the rows."""
    first = [plan.slots.index(row) for row in range(plan.row.slots)]
    step = first[1] - first[0] if len(first) > 1 else 0
    if first == [first[0] + step * k for k in range(len(first))]:
        return number * step + first[0]
    chosen: Expr = as_expr(first[-1])
    for row in reversed(range(len(first) - 1)):
        chosen = select(binary(BinaryOp.EQ, number, row), as_expr(first[row]), chosen)
    return chosen


def _flat(coords: tuple[Expr, ...], shape: tuple[int, ...]) -> Expr:
    total: Expr = as_expr(0)
    for x, extent in zip(coords, shape, strict=True):
        total = total * extent + x
    return total


def _deliver(op: Reduce, plan: _Plan, part: Buffer, ctx: SimtContext) -> Stmt:
    """Store the rows: each holder into its register, or one of them into memory."""
    target, slot = op.dst.buffer, ctx.fresh_var("r")
    if target.scope is Scope.FRAGMENT:
        wanted = ctx.fragment_of(target).reshape(plan.row.shape)
        place = held(wanted, ctx.thread, slot)
        at = as_expr(_at(plan.row, None, list(place.coords)))
        registers = ctx.places.flat(target)
        result = _with_old(op, Load(part, (at,)), Load(registers, (slot,)))
        loop = _unrolled(slot, wanted.slots, Store(registers, (slot,), result))
        return _by_holders(wanted, loop, ctx)
    place = held(plan.row, ctx.thread, slot)
    indices = _indices(op, place.coords)
    old = Load(target, indices)
    value = Load(part, (slot,))
    result = _with_old(op, value, old)
    store = lower_store(Store(target, indices, result), ctx)
    speaks = binary(BinaryOp.EQ, place.replica, 0)
    return _by_holders(plan.row, _unrolled(slot, plan.row.slots, If(speaks, store)), ctx)


def _by_holders(fragment: Fragment, stmt: Stmt, ctx: SimtContext) -> Stmt:
    """Return `stmt` for the threads among which the tile is spread."""
    if fragment.thread_extent >= ctx.threads:
        return stmt
    return If(binary(BinaryOp.LT, ctx.thread, fragment.thread_extent), stmt)


def _with_old(op: Reduce, value: Expr, old: Expr) -> Expr:
    if not op.clear:
        value = _combined(op, value, cast(old, value.dtype))
    return cast(value, op.dst.buffer.dtype)


def _indices(op: Reduce, coords: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the place in the destination of the row at `coords`."""
    kept = [k for k in range(len(op.src.extents)) if k != op.dim]
    place: list[Expr] = []
    for start, axis in zip(op.dst.starts, op.dst_axes, strict=True):
        offset = as_expr(0) if axis is None or not kept else coords[kept.index(axis)]
        place.append(binary(BinaryOp.ADD, as_expr(start), offset))
    return tuple(place)


def _combined(op: Reduce, a: Expr, b: Expr) -> Expr:
    return combine(op.kind, a, b, nan_propagate=op.nan_propagate)


def _unrolled(var: Var, extent: int, body: Stmt, *, start: int = 0) -> Stmt:
    return For(var, as_expr(start), as_expr(extent), as_expr(1), body, LoopKind.UNROLL)


def reduce_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of reductions."""
    return (Rule(name="simt.reduce", op=Reduce, lower=lower_reduce, infer_layout=infer_reduce),)
