"""Operands of a matrix multiplication that must go from registers through shared memory first."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.stmt import Seq, Stmt
from tile_core.layout import Layout, row_major, shared_operand
from tile_core.ops.gemm import Gemm
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do, seq
from tile_core.simt.shared_staging import copied_in
from tile_core.simt.subbyte_access import storage_dtype

_ALIGNMENT = 128
"""Bytes that a tile's place is a multiple of: where banks repeat."""


def staged(op: Gemm, a: bool, b: bool, ctx: SimtContext) -> tuple[Stmt, Gemm, Stmt]:
    """Return what brings operands into shared memory, `op` on these tiles, and what ends it.

    Before   gemm A_local, B_shared, C_local
    After    a_tile <- A_local;  barrier;  gemm a_tile, B_shared, C_local;  barrier

    Parameters
    ----------
    a, b
        Which of the operands, held in registers, are moved.
    """
    operands = {"a": op.a, "b": op.b}
    moved = {name: operands[name] for name, moves in (("a", a), ("b", b)) if moves}
    if not moved:
        return Seq(()), op, Seq(())
    tiles = _side_by_side({name: region.buffer for name, region in moved.items()}, ctx)
    before = [
        copied_in(whole(region.buffer), tiles[name], region.buffer.dtype, ctx)
        for name, region in moved.items()
    ]
    there = {name: replace(region, buffer=tiles[name]) for name, region in moved.items()}
    op = replace(op, a=there.get("a", op.a), b=there.get("b", op.b))
    return seq(before, do("sync")), op, do("sync")


def _side_by_side(buffers: Mapping[str, Buffer], ctx: SimtContext) -> dict[str, Buffer]:
    """Return a shared tile like each of `buffers`, for use at the same time.

    All workspaces of a block begin at the same byte, for operators run one after the other. Tiles
    of one operator keep apart by their layouts: each leaves the bytes of those before it free.
    """
    tiles: dict[str, Buffer] = {}
    taken = 0
    for name, buffer in buffers.items():
        tiles[name] = tile = _tile_behind(taken, f"{name}_tile", buffer, ctx)
        taken = ctx.places.flat(tile).nbytes or 0  # with what the tile itself leaves free
    return tiles


def _tile_behind(taken: int, name_hint: str, buffer: Buffer, ctx: SimtContext) -> Buffer:
    """Return a shared tile like `buffer` that leaves the first `taken` bytes free."""
    shape, bits = buffer.static_shape or (), storage_dtype(buffer.dtype, Scope.SHARED).bits
    skipped = -(-taken // _ALIGNMENT) * _ALIGNMENT * 8 // bits
    try:
        inside = shared_operand(shape, bits)
    except LayoutError:
        inside = row_major(shape)
    tile = Buffer(ctx.names.fresh(name_hint), shape, buffer.dtype, Scope.SHARED, span=buffer.span)
    ctx.places.layouts.known[tile] = Layout(
        shape, lambda *x: (inside.address(*x) + skipped,), (inside.cosize + skipped,)
    )
    ctx.workspaces.append(ctx.places.flat(tile))
    return tile
