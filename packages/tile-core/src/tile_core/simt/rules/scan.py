"""Running totals along one dimension of a tile."""

from __future__ import annotations

import math

from tile_core.errors import ShapeMismatch
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import as_expr, binary, call, const, select
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.stmt import Alloc, For, If, Let, LoopKind, Seq, Stmt, Store
from tile_core.ops.loop_builders import accumulator
from tile_core.ops.reduce import combine
from tile_core.ops.scan import Scan
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do
from tile_core.simt.shared_staging import batches, by_each_thread, copied_in, copied_out
from tile_core.simt.subbyte_access import carrier


def lower_scan(op: Scan, ctx: SimtContext) -> Stmt:
    """Return the scan as each thread runs it.

    Before   scan sum x, dim=1 -> y
    After    x to shared memory, barrier;  for each row of this warp, 32 elements at a time:
             five steps of shuffles, the total so far added;  barrier;  y from shared memory

    Each warp takes whole rows; a row's running total goes from one group of lanes to the next.
    Rows pass in batches where not all of them fit beside the kernel's tiles. Each thread
    scans an array of its own alone.

    Raises
    ------
    ShapeMismatch
        If the extents are not known at compile time.
    """
    if op.src.buffer.scope.is_thread_private and op.dst.buffer.scope.is_thread_private:
        return by_each_thread(op.serial_form(), ctx)
    shape = op.src.static_extents
    if shape is None:
        raise ShapeMismatch(
            "a scan needs extents known at compile time",
            span=op.span,
            hint="scan a tile of fixed extents, and carry the last element over",
        )
    wide = carrier(accumulator("total", op.dst.buffer.dtype).dtype)
    others = [axis for axis in range(len(shape)) if axis != op.dim]
    if cut := batches(shape, math.prod(shape) * wide.bits // 8, others, ctx):
        at = [(batch.of(op.src, batch.dim), batch.of(op.dst, batch.dim)) for batch in cut]
        return Seq(tuple(lower_scan(replace(op, src=a, dst=b), ctx) for a, b in at))
    tile = ctx.scratch_tile("scanned", shape, str(wide))
    barrier = do("sync", span=op.span)
    return Seq(
        (
            copied_in(op.src, tile, op.dst.buffer.dtype, ctx),
            barrier,
            _rows(op, tile, shape, ctx),
            barrier,
            copied_out(tile, op.dst, ctx),
            barrier,
        )
    )


def _rows(op: Scan, tile: Buffer, shape: tuple[int, ...], ctx: SimtContext) -> Stmt:
    """Let each warp scan the rows whose number is its own, modulo the number of warps."""
    width = _width(ctx)
    groups = ctx.threads // width
    others = [n for axis, n in enumerate(shape) if axis != op.dim]
    rows, length = math.prod(others), shape[op.dim]
    row, base = ctx.fresh_var("row"), ctx.fresh_var("base")
    carried = ctx.registers("carried", 1, str(tile.dtype))
    identity = const(op.kind.identity(op.dst.buffer.dtype), tile.dtype)
    first = as_expr(0)
    body = Seq(
        (
            Store(carried, (first,), identity),
            _for(base, as_expr(0), length, width,
                 _group(op, tile, others, row, base, length, carried, ctx)),
        )
    )  # fmt: skip
    loop = _for(row, ctx.thread // width, rows, groups, body)
    if ctx.threads % width:  # the threads left over are too few for a row
        loop = If(binary(BinaryOp.LT, ctx.thread, groups * width), loop)
    return Seq((Alloc(carried), loop))


def _width(ctx: SimtContext) -> int:
    """Return how many lanes scan a row together: a warp, or what there is of one.

    Shuffles need all threads of a warp: where those of the only one are no power of two, each
    scans rows alone.
    """
    if ctx.threads >= ctx.machine.warp_size:
        return ctx.machine.warp_size
    return ctx.threads if ctx.threads & (ctx.threads - 1) == 0 else 1


def _group(
    op: Scan, tile: Buffer, others: list[int], row: Var, base: Var, length: int,
    carried: Buffer, ctx: SimtContext,
) -> Stmt:  # fmt: skip
    """Scan the next elements of one row, one per lane."""
    width = _width(ctx)
    lane = ctx.thread % width
    along = binary(BinaryOp.ADD, base, lane)
    inside = binary(BinaryOp.LT, along, length)
    place = _place(op, others, row, length - 1 - along if op.reverse else along)
    value = ctx.registers("value", 1, str(tile.dtype))
    zero = as_expr(0)
    identity = const(op.kind.identity(op.dst.buffer.dtype), tile.dtype)
    mine = Load(value, (zero,))
    steps: list[Stmt] = [
        Alloc(value),
        Store(value, (zero,), select(inside, ctx.load(tile, *place), identity)),
    ]
    distance = 1
    while distance < width:
        before = call("shfl_up", mine, as_expr(distance), as_expr(width))
        got = Var(ctx.names.fresh("before"), tile.dtype)
        steps += [
            Let(got, before),
            If(
                binary(BinaryOp.GE, lane, distance),
                Store(value, (zero,), combine(op.kind, mine, got, nan_propagate=op.nan_propagate)),
            ),
        ]
        distance *= 2
    last = mine if width == 1 else call("shfl_sync", mine, as_expr(width - 1), as_expr(width))
    steps += [
        Store(
            value,
            (zero,),
            combine(op.kind, Load(carried, (zero,)), mine, nan_propagate=op.nan_propagate),
        ),
        If(inside, Store(ctx.places.flat(tile), (ctx.places.offset(tile, place),), mine)),
        Store(carried, (zero,), last),
    ]
    return Seq(tuple(steps))


def _place(op: Scan, others: list[int], row: Var, along: Expr) -> tuple[Expr, ...]:
    """Return the coordinates of an element, given the number of its row."""
    coords: list[Expr] = []
    rest: Expr = row
    for extent in reversed(others):
        coords.insert(0, rest % extent)
        rest = rest // extent
    coords.insert(op.dim, along)
    return tuple(coords)


def _for(var: Var, start: Expr, stop: int, step: int, body: Stmt) -> Stmt:
    return For(var, start, as_expr(stop), as_expr(step), body, LoopKind.SERIAL)
