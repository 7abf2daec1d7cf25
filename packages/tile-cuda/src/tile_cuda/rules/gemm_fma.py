"""Matrix products by ordinary arithmetic: any element types, any extents, any layout of C."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Region, Scope, static_value, whole
from tile_core.ir.stmt import For, Parallel, Stmt
from tile_core.layout import Fragment, Layout, row_major
from tile_core.layout.loop import LoopLayout, planned
from tile_core.layout.loop_inverse import loop_over
from tile_core.ops.gemm import Gemm
from tile_core.ops.serial.gemm import expand_gemm
from tile_core.simt.build import do, seq
from tile_core.simt.context import SimtContext
from tile_core.simt.partition import partition
from tile_core.simt.staging import copied_in
from tile_cuda.rules.gemm_blocks import block_fragment, block_tiling, lower_blocks

_ALIGNMENT = 16
"""Bytes that a tile's place is a multiple of."""


def lower_fma(op: Gemm, ctx: SimtContext) -> Stmt:
    """Return the product as each thread computes its elements of C.

    Factors in registers go through shared memory, because each element is needed by threads
    that do not hold it. Where C is spread in rectangles, a thread multiplies a column of A by
    a row of B at a time; else element by element.
    """
    before, op = _staged(op, ctx)
    tiling = block_tiling(op, ctx.threads)
    if _is_spread_in(op.c, block_fragment(tiling), ctx):
        return seq(before, lower_blocks(op, tiling, ctx), _after(before))
    return seq(before, _by_elements(op, ctx), _after(before))


def _is_spread_in(region: Region, fragment: Fragment, ctx: SimtContext) -> bool:
    """Whether `region` is a whole tile that threads hold as `fragment` says."""
    buffer = region.buffer
    if buffer.scope is not Scope.FRAGMENT or buffer.rank != 2 or not region.is_whole:
        return False
    return ctx.fragment_of(buffer).same_function(fragment)


def _staged(op: Gemm, ctx: SimtContext) -> tuple[list[Stmt], Gemm]:
    """Return `op` with all factors in shared memory, and the copies that bring them there.

    Both tiles belong to one operator, so the second lies behind the first.
    """
    before: list[Stmt] = []
    room = 0

    def moved(name: str, region: Region) -> Region:
        nonlocal room
        buffer = region.buffer
        if buffer.scope is not Scope.FRAGMENT:
            return region
        tile = _scratch(f"{name}_tile", buffer, room, ctx)
        room += ctx.places.flat(tile).nbytes or 0
        before.append(copied_in(whole(buffer), tile, buffer.dtype, ctx))
        return replace(region, buffer=tile)

    op = replace(op, a=moved("a", op.a), b=moved("b", op.b))
    return ([*before, do("sync")] if before else []), op


def _scratch(wish: str, buffer: Buffer, room: int, ctx: SimtContext) -> Buffer:
    """Return a shared tile like `buffer`, by rows, that leaves its first `room` bytes free."""
    shape = buffer.static_shape or ()
    skipped = -(-room // _ALIGNMENT) * _ALIGNMENT * 8 // max(8, buffer.dtype.bits)
    rows = row_major(shape)
    tile = Buffer(ctx.names.fresh(wish), shape, buffer.dtype, Scope.SHARED, span=buffer.span)
    ctx.places.layouts.known[tile] = Layout(
        shape, lambda *x: (rows.address(*x) + skipped,), (rows.size + skipped,)
    )
    ctx.workspaces.append(ctx.places.flat(tile))
    return tile


def _after(before: list[Stmt]) -> Stmt | None:
    """Keep the next use of the staged tiles from overtaking this one."""
    return do("sync") if before else None


def _by_elements(op: Gemm, ctx: SimtContext) -> Stmt:
    """Let each thread sum up the elements of C that it holds, one after the other."""
    rows = expand_gemm(op)
    if not isinstance(rows, For) or not isinstance(rows.body, For):
        raise InternalError("a serial product is not a nest of loops", span=op.span)
    columns = rows.body
    nest = Parallel((rows.var, columns.var), (rows.stop, columns.stop), columns.body, span=op.span)
    return partition(nest, _elements_of(op.c, ctx), ctx)


def _elements_of(region: Region, ctx: SimtContext) -> LoopLayout:
    """Return which thread computes each element of the last two dimensions of `region`."""
    extents = (region.static_extents or ())[-2:]
    if region.buffer.scope is not Scope.FRAGMENT:
        return planned(extents, ctx.threads)
    fragment = ctx.fragment_of(region.buffer)
    if region.is_whole and region.buffer.rank == 2:
        return loop_over(fragment)
    zeros = (0,) * (region.buffer.rank - 2)
    first, second = (static_value(start) or 0 for start in region.starts[-2:])

    def place(i: Any, j: Any) -> tuple[Any, ...]:
        return (*zeros, i + first, j + second)

    part = Fragment(
        extents,
        forward_thread_fn=lambda i, j, rep=0: fragment.forward_thread(*place(i, j), rep=rep),
        replicate=fragment.replication,
        forward_index_fn=lambda i, j: fragment.forward_index(*place(i, j)),
        threads=fragment.thread_extent,
    )
    return loop_over(part)
