"""Fetching ahead of reading: the next iteration of a loop, or further along a long stretch."""

from __future__ import annotations

from tile_core.ir.expr import Load
from tile_core.ir.node import walk
from tile_cpu.lowering import access
from tile_cpu.lowering.buffer_addresses import FlatBuffer
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.nontemporal_stores import is_large
from tile_cpu.lowering.types import number, scalar_name
from tile_cpu.tir.build import i32, llvm_effect
from tile_cpu.tir.nodes import BufferLoad, PrimExpr, tirx

READ_AHEAD = 4096
"""Bytes between what a long stretch reads and what it fetches: a page, so that addresses are
translated ahead of time as well."""

LONG_STRETCH = 2 * READ_AHEAD
"""Bytes of a stretch that is read ahead: what is fetched beyond its end is the lesser part."""

_READ, _DATA = 0, 1


def prefetch_next_iteration(ctx: Context, expr: Load, place: FlatBuffer) -> None:
    """Fetch the cache line that `expr`, as a scalar here, reads in the next iteration.

    Nothing happens unless the loop asks for it and the load follows that iteration's index. The
    address may lie outside the tensor: a prefetch never faults.
    """
    if ctx.ahead is None or not expr.buffer.scope.is_global:
        return
    index, level = ctx.ahead
    if not any(node is index for at in expr.indices for node in walk(at)):
        return
    now = ctx.vars[index]
    outer_known, ctx.frame.known = ctx.frame.known, {}
    ctx.vars[index] = now + number(1, scalar_name(now))
    offset = access.position(ctx, place, expr.indices)
    ctx.vars[index], ctx.frame.known = now, outer_known
    _fetch(ctx, place, offset, level)


def read_ahead(ctx: Context, expr: Load, place: FlatBuffer, offset: PrimExpr) -> None:
    """Fetch what lies `READ_AHEAD` bytes beyond `offset`, which `expr` reads now.

    Nothing happens unless the loop at hand is long, calls functions and stores past the
    caches. It has few reads in flight, which hides neither the latency of memory nor the
    translation of addresses behind them; a loop that merely moves has many, and prefetches
    would get in their way.
    """
    buffer = expr.buffer
    bits = max(8, buffer.dtype.bits)
    if not buffer.scope.is_global or ctx.stretch * bits < LONG_STRETCH * 8:
        return
    size = buffer.storage.nbytes
    if size is not None and is_large(size, ctx.machine):
        ahead = number(READ_AHEAD * 8 // bits, scalar_name(offset))
        _fetch(ctx, place, offset + ahead, level=1)


def _fetch(ctx: Context, place: FlatBuffer, offset: PrimExpr, level: int) -> None:
    address = tirx.address_of(BufferLoad(place.flat, [offset]))
    # LLVM counts locality the other way round: 3 is the nearest cache.
    locality = i32(4 - level)
    ctx.run(llvm_effect("llvm.prefetch", address, i32(_READ), locality, i32(_DATA)))
