"""Totals of the rows of a register tile: within registers, then lanes, then warps."""

from __future__ import annotations

import math

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import as_expr, binary, cast, const, select
from tile_core.ir.expr import BinaryOp, Call, Expr, Load
from tile_core.ir.stmt import Alloc, If, Let, Stmt, Store
from tile_core.layout import Fragment
from tile_core.layout.mixed_radix import row_major_position
from tile_core.layout.preimages import reduced_fragment
from tile_core.ops.loop_builders import accumulator
from tile_core.ops.reduce import Reduce, combine, magnitude
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do, seq, unrolled
from tile_core.simt.inverse_fragment import by_holders, held, if_held, is_dense, is_known, slot_map
from tile_core.simt.lower_accesses import lower_store
from tile_core.simt.partial_row_exchange import Exchange, exchange_along
from tile_core.simt.subbyte_access import carrier, converted, packed, unpacked


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The rows of a tile in registers.

    `source` holds the tile and `row` its rows; `slots` has for each register of the source that
    of its row, and `exchange` is how the threads of a row bring their parts together. The totals
    are `found` by the threads of the row, or by others through shared memory.
    """

    source: Fragment
    row: Fragment
    slots: tuple[int, ...]
    exchange: Exchange
    found: Fragment


def row_plan(op: Reduce, ctx: SimtContext) -> RowPlan | None:
    """Return how the holders of the source find the totals of its rows among themselves.

    None if the source is not all of a register tile, every thread wants the result for
    itself, or the tiles are spread too irregularly: such rows go through memory.
    """
    target = op.dst.buffer
    if op.src.buffer.scope is not Scope.FRAGMENT or not op.src.is_whole:
        return None
    if target.scope.is_thread_private:
        return None
    source = ctx.fragment_of(op.src.buffer)
    row = reduced_fragment(source, op.dim)
    slots = slot_map(source, row, op.dim)
    exchange = exchange_along(source, op.dim, ctx.machine.warp_size)
    if slots is None or exchange is None or not (is_known(source) and is_dense(row)):
        return None
    partial = ctx.threads % ctx.machine.warp_size
    if partial % (2 * max(exchange.lane_masks, default=0) or 1):
        return None  # some lanes would exchange with lanes that are no threads
    if target.scope is Scope.FRAGMENT:
        if not op.dst.is_whole:
            return None
        wanted = ctx.fragment_of(target).reshape(row.shape)
        if not is_known(wanted):
            return None
        if not row.covers(wanted):
            return RowPlan(source, row, slots, exchange, found=wanted)
    return RowPlan(source, row, slots, exchange, found=row)


def reduce_across_warps(op: Reduce, plan: RowPlan, ctx: SimtContext) -> Stmt:
    """Return the reduction among the threads that hold the source.

    Before   reduce sum scores, dim=1 -> total
    After    part[r] = 0;  part[r] += scores[i];  part[r] += shfl_xor(part[r], 1), …;
             across warps: parts = part[r], barrier, part[r] = sum of parts, barrier;
             total[r] = part[r]
    """
    wide = carrier(accumulator("part", op.dst.buffer.dtype).dtype)
    part = ctx.registers("part", plan.row.slots, str(wide))
    is_near = plan.found is plan.row
    found = part if is_near else ctx.registers("found", plan.found.slots, str(wide))
    identity = const(op.kind.identity(op.dst.buffer.dtype), wide)
    return seq(
        Alloc(part),
        unrolled(ctx, "r", plan.row.slots, lambda slot: Store(part, (slot,), identity)),
        by_holders(plan.source, _fold(op, plan, part, ctx), ctx),
        *(_across_lanes(op, plan, part, mask, ctx) for mask in plan.exchange.lane_masks),
        None if is_near else Alloc(found),
        _across_warps(op, plan, part, found, ctx),
        _deliver(op, plan, found, ctx),
    )


def _fold(op: Reduce, plan: RowPlan, part: Buffer, ctx: SimtContext) -> Stmt:
    """Combine the registers of one thread, each into the register of its row."""
    registers, result = ctx.places.flat(op.src.buffer), op.dst.buffer.dtype

    def step(slot: Expr) -> Stmt:
        at = _row_slot(op, plan, slot, ctx)
        value = unpacked(Load(registers, (slot,)), op.src.buffer.dtype)
        value = cast(converted(value, result), part.dtype)
        if op.kind.takes_magnitudes:
            value = cast(converted(magnitude(value), result), part.dtype)
        total = Store(part, (at,), _combined(op, Load(part, (at,)), value))
        return if_held(plan.source, slot, total, ctx)

    return unrolled(ctx, "i", plan.source.slots, step)


def _row_slot(op: Reduce, plan: RowPlan, slot: Expr, ctx: SimtContext) -> Expr:
    """Return the register of the row to which a register of the source belongs."""
    if len(set(plan.slots)) == 1:
        return as_expr(plan.slots[0])
    where = held(plan.source, ctx.thread, slot).coords
    kept = [x for axis, x in enumerate(where) if axis != op.dim] or [as_expr(0)]
    return as_expr(plan.row.slot_at(*kept))


def _across_lanes(op: Reduce, plan: RowPlan, part: Buffer, mask: int, ctx: SimtContext) -> Stmt:
    """Exchange with the lanes that differ in `mask`, which hold other parts of the same rows."""

    def step(slot: Expr) -> Stmt:
        mine = Load(part, (slot,))
        theirs = Call("shfl_xor", (mine, as_expr(mask), as_expr(ctx.machine.warp_size)), part.dtype)
        return _with_theirs(op, mine, theirs, ctx)

    return unrolled(ctx, "r", plan.row.slots, step)


def _with_theirs(op: Reduce, mine: Load, theirs: Expr, ctx: SimtContext) -> Stmt:
    """Combine with another lane's part, which all lanes ask for once, whatever they hold."""
    name: Stmt | None = None
    if op.nan_propagate:
        heard = ctx.fresh_var("theirs", str(mine.dtype))
        name, theirs = Let(heard, theirs), heard
    return seq(name, Store(mine.buffer, mine.indices, _combined(op, mine, theirs)))


def _across_warps(op: Reduce, plan: RowPlan, part: Buffer, found: Buffer, ctx: SimtContext) -> Stmt:
    """Bring the parts of several warps together through shared memory.

    One lane of each group that agrees after the shuffles writes; every thread that finds a row
    reads all parts of it, so the order of combination is the same for all of them. Threads
    behind the holders have no row, nor have registers that pad a thread's share: theirs would
    be memory beside the parts.
    """
    exchange, rows = plan.exchange, math.prod(plan.row.shape)
    if exchange.warp_count == 1 and found is part:
        return seq()
    space = ctx.workspace("parts", exchange.warp_count * rows, str(part.dtype))
    mine = ctx.warp // exchange.warp_step % exchange.warp_count

    def number(of: Fragment, slot: Expr) -> Expr:
        """Return the row-major number of the row in a register."""
        coords = held(of, ctx.thread, slot).coords
        return as_expr(row_major_position(coords, plan.row.shape))

    def write(slot: Expr) -> Stmt:
        replica = held(plan.source, ctx.thread, _first_slot(plan, slot)).replica
        speaks = binary(
            BinaryOp.AND,
            binary(BinaryOp.EQ, ctx.lane & exchange.lane_bits, 0),
            binary(BinaryOp.EQ, replica, 0),
        )
        handed = Store(space, (mine * rows + number(plan.row, slot),), Load(part, (slot,)))
        return by_holders(plan.source, If(speaks, handed), ctx)

    def total(slot: Expr) -> Stmt:
        row, sum_so_far = number(plan.found, slot), Load(found, (slot,))

        def add(warp: Expr) -> Stmt:
            theirs = Load(space, (warp * rows + row,))
            return Store(found, (slot,), _combined(op, sum_so_far, theirs))

        first = Store(found, (slot,), Load(space, (row,)))
        rest = unrolled(ctx, "w", exchange.warp_count, add, start=1)
        return if_held(plan.found, slot, seq(first, rest), ctx)

    holders = plan.source if found is part else plan.found
    return seq(
        unrolled(ctx, "r", plan.row.slots, write),
        do("sync"),
        by_holders(holders, unrolled(ctx, "r", plan.found.slots, total), ctx),
        do("sync"),
    )


def _first_slot(plan: RowPlan, number: Expr) -> Expr:
    """Return a register of the source that belongs to register `number` of the rows."""
    first = [plan.slots.index(row) for row in range(plan.row.slots)]
    step = first[1] - first[0] if len(first) > 1 else 0
    if first == [first[0] + step * k for k in range(len(first))]:
        return number * step + first[0]
    chosen: Expr = as_expr(first[-1])
    for row in reversed(range(len(first) - 1)):
        chosen = select(binary(BinaryOp.EQ, number, row), as_expr(first[row]), chosen)
    return chosen


def _deliver(op: Reduce, plan: RowPlan, part: Buffer, ctx: SimtContext) -> Stmt:
    """Store the rows: each holder into its register, or one of them into memory."""
    if op.dst.buffer.scope is Scope.FRAGMENT:
        return _into_registers(op, plan, part, ctx)

    def store(slot: Expr) -> Stmt:
        place = held(plan.found, ctx.thread, slot)
        indices = _indices(op, place.coords)
        result = _with_old(op, Load(part, (slot,)), Load(op.dst.buffer, indices))
        result = cast(result, op.dst.buffer.dtype)
        stored = lower_store(Store(op.dst.buffer, indices, result), ctx)
        return If(binary(BinaryOp.EQ, place.replica, 0), stored)

    return by_holders(plan.found, unrolled(ctx, "r", plan.found.slots, store), ctx)


def _into_registers(op: Reduce, plan: RowPlan, part: Buffer, ctx: SimtContext) -> Stmt:
    registers, dtype = ctx.places.flat(op.dst.buffer), op.dst.buffer.dtype
    wanted = ctx.fragment_of(op.dst.buffer).reshape(plan.found.shape)

    def store(slot: Expr) -> Stmt:
        at = as_expr(plan.found.slot_at(*held(wanted, ctx.thread, slot).coords))
        old = unpacked(Load(registers, (slot,)), dtype)
        result = converted(_with_old(op, Load(part, (at,)), old), dtype)
        return if_held(wanted, slot, Store(registers, (slot,), packed(result, dtype)), ctx)

    return by_holders(wanted, unrolled(ctx, "r", wanted.slots, store), ctx)


def _with_old(op: Reduce, value: Expr, old: Expr) -> Expr:
    """Return the result, to which the old one counts where it is not cleared."""
    return value if op.clear else _combined(op, value, cast(old, value.dtype))


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
