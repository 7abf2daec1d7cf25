"""Factors of a matrix product that must go from registers through shared memory first."""

from __future__ import annotations

from dataclasses import replace

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.stmt import Seq, Stmt
from tile_core.layout import Layout, row_major, shared_operand
from tile_core.ops.gemm import Gemm
from tile_core.simt.build import do, seq
from tile_core.simt.context import SimtContext
from tile_core.simt.packing import storage_dtype
from tile_core.simt.staging import copied_in

_ALIGNMENT = 128
"""Bytes that a tile's place is a multiple of: where banks repeat."""


def staged(op: Gemm, a: bool, b: bool, ctx: SimtContext) -> tuple[Stmt, Gemm, Stmt]:
    """Return what brings factors into shared memory, `op` on these tiles, and what ends it.

    Before   gemm A_local, B_shared, C_local
    After    a_tile <- A_local;  barrier;  gemm a_tile, B_shared, C_local;  barrier

    Parameters
    ----------
    a, b
        Which of the factors, held in registers, are moved.
    """
    if not a and not b:
        return Seq(()), op, Seq(())
    before: list[Stmt] = []
    room = 0

    def moved(letter: str, region: Region) -> Region:
        nonlocal room
        tile = _tile_behind(room, f"{letter}_tile", region.buffer, ctx)
        room += ctx.places.flat(tile).nbytes or 0
        source = region.buffer
        before.append(copied_in(whole(source), tile, source.dtype, ctx))
        return replace(region, buffer=tile)

    op = replace(op, a=moved("a", op.a) if a else op.a, b=moved("b", op.b) if b else op.b)
    return seq(before, do("sync")), op, do("sync")


def _tile_behind(room: int, wish: str, buffer: Buffer, ctx: SimtContext) -> Buffer:
    """Return a shared tile like `buffer` that leaves the first `room` bytes free.

    All tiles of one operator begin at the same place, so the second must lie behind the first.
    """
    shape, bits = buffer.static_shape or (), storage_dtype(buffer.dtype, Scope.SHARED).bits
    skipped = -(-room // _ALIGNMENT) * _ALIGNMENT * 8 // bits
    try:
        inside = shared_operand(shape, bits)
    except LayoutError:
        inside = row_major(shape)
    tile = Buffer(ctx.names.fresh(wish), shape, buffer.dtype, Scope.SHARED, span=buffer.span)
    ctx.places.layouts.known[tile] = Layout(
        shape, lambda *x: (inside.address(*x) + skipped,), (inside.cosize + skipped,)
    )
    ctx.workspaces.append(ctx.places.flat(tile))
    return tile
