"""Fetching what the next round of a loop will read, little by little during this one."""

from __future__ import annotations

from tile_core.ir.expr import Load
from tile_core.ir.node import walk
from tile_core.tir.build import i32, llvm_effect
from tile_core.tir.nodes import BufferLoad, tirx
from tile_cpu.lowering import access
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.places import Place
from tile_cpu.lowering.types import number, scalar_name

FETCH_NEXT_ROUND = "fetch_next_round"
"""Hint in a data-parallel loop: fetch meanwhile what its loads of global tensors read in the
next round of the sequential loop around it. The value is the cache level to fetch into."""

_READ, _DATA = 0, 1


def fetch_next_round(ctx: Context, expr: Load, place: Place) -> None:
    """Fetch the cache line that `expr`, as a scalar here, reads in the next round.

    Nothing happens unless the loop asks for it and the load follows that round's index. The
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
    address = tirx.address_of(BufferLoad(place.flat, [offset]))
    # LLVM counts locality the other way round: 3 is the nearest cache.
    locality = i32(4 - level)
    ctx.run(llvm_effect("llvm.prefetch", address, i32(_READ), locality, i32(_DATA)))
