"""Tiles on their way through shared memory, where threads find what others hold."""

from __future__ import annotations

from dataclasses import replace

from tile_core.dtypes import DType
from tile_core.ir.arith import as_expr, binary, cast
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.stmt import Parallel, Stmt, Store
from tile_core.layout.loop import LoopLayout, planned
from tile_core.layout.loop_inverse import loop_over
from tile_core.passes.lower_serially import nested_loops
from tile_core.simt.context import SimtContext
from tile_core.simt.partition import partition, unrolled


def copied_in(source: Region, tile: Buffer, dtype: DType, ctx: SimtContext) -> Stmt:
    """Return the copy of a region into a shared tile of its extents.

    Each element is converted to `dtype` first, then to the tile's own element type.
    """
    loop_vars = _variables(tile, ctx)
    value = cast(cast(Load(source.buffer, _inside(source, loop_vars)), dtype), tile.dtype)
    nest = Parallel(loop_vars, _extents(tile), Store(tile, loop_vars, value))
    return partition(nest, _layout(source, tile, ctx), ctx)


def copied_out(tile: Buffer, target: Region, ctx: SimtContext) -> Stmt:
    """Return the copy of a shared tile into a region of its extents, converting elements.

    Each thread copies all of it into an array of its own.
    """
    loop_vars = _variables(tile, ctx)
    value = cast(Load(tile, loop_vars), target.buffer.dtype)
    store = Store(target.buffer, _inside(target, loop_vars), value)
    nest = Parallel(loop_vars, _extents(tile), store)
    if target.buffer.scope.is_thread_private:
        return by_each_thread(nested_loops(nest), ctx)
    return partition(nest, _layout(target, tile, ctx), ctx)


def by_each_thread(body: Stmt, ctx: SimtContext) -> Stmt:
    """Return what each thread does in full, with loops over its registers written out."""
    return unrolled(ctx.lower(body, replace(ctx, by_thread=True)))


def _variables(tile: Buffer, ctx: SimtContext) -> tuple[Var, ...]:
    return tuple(ctx.fresh_var(f"i{axis}") for axis in range(tile.rank))


def _extents(tile: Buffer) -> tuple[Expr, ...]:
    return tuple(as_expr(extent) for extent in tile.shape)


def _inside(region: Region, offsets: tuple[Var, ...]) -> tuple[Expr, ...]:
    """Return the indices of a point of a region; extents of 1 may lack in the tile."""
    pairs = zip(region.starts, offsets, strict=True)
    return tuple(binary(BinaryOp.ADD, as_expr(start), offset) for start, offset in pairs)


def _layout(region: Region, tile: Buffer, ctx: SimtContext) -> LoopLayout:
    """Let threads that hold an element move it; elements in memory go round the threads."""
    shape = tile.static_shape or ()
    if region.buffer.scope.is_spread and region.is_whole:
        return loop_over(ctx.fragment_of(region.buffer))
    return planned(shape, ctx.threads)
