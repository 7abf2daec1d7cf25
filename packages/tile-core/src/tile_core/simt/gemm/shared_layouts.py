"""Matrix operands in shared memory: layouts nobody has fixed yet, and copies from and to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.stmt import Seq, Stmt
from tile_core.layout import Fragment, Layout, row_major, shared_operand
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap, Rule
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import do, seq
from tile_core.simt.gemm.matrix_unit import MatrixUnit
from tile_core.simt.rules.copy import goes_down, lower_copy
from tile_core.simt.shared_staging import copied_in
from tile_core.simt.subbyte_access import storage_dtype
from tile_core.target import Target


def open_operand_layout(
    buffer: Buffer,
    ctx: InferContext,
    layout: Callable[[tuple[int, ...], int], Layout] = shared_operand,
) -> dict[Buffer, Layout]:
    """Return the layout of a shared tile, or nothing if it is not ours to choose.

    Tiles with a layout keep it. Tiles that are also seen in another shape or element type stay
    as they are: a view may not survive a swizzle. Tiles that the copy engine copies have a layout
    that it knows.

    `layout` tells where elements of so many bits lie in a tile of that shape.
    """
    shape = buffer.static_shape
    if (
        buffer.scope is not Scope.SHARED
        or shape is None
        or ctx.layout_of(buffer) is not None
        or ctx.is_viewed(buffer)
        or any(isinstance(user, BulkCopy) for user in ctx.users_of(buffer))
    ):
        return {}
    try:
        return {buffer: layout(shape, storage_dtype(buffer.dtype, buffer.scope).bits)}
    except LayoutError:
        return {}


def operand_copy_rule(name: str, unit: MatrixUnit) -> Rule[Copy]:
    """Return the rule that gives tiles which become operands in registers an operand's layout.

    They are copied as all tiles are: neighbouring threads read neighbouring rows.
    """

    def infer(op: Copy, ctx: InferContext, level: InferLevel) -> LayoutMap:
        held = ctx.layout_of(op.dst.buffer)
        if level is InferLevel.STRICT or not isinstance(held, Fragment) or not goes_down(held):
            return {}
        return open_operand_layout(
            op.src.buffer, ctx, lambda shape, bits: unit.operand_layout(shape, bits, True)
        )

    return Rule(
        name=name, op=Copy, lower=lower_copy, infer_layout=infer, rejects=_rejects, priority=10
    )


def _rejects(op: Copy, target: Target) -> str | None:
    if (op.src.buffer.scope, op.dst.buffer.scope) != (Scope.SHARED, Scope.FRAGMENT):
        return "operands are copied from shared memory into fragments"
    if op.is_async or op.prefer_instruction is not None or op.loop_layout is not None:
        return "the copy asks for another instruction or order"
    return None


_ALIGNMENT = 128
"""Bytes that a tile's place is a multiple of: where banks repeat."""


def staged(op: Gemm, a: bool, b: bool, ctx: SimtContext) -> tuple[Stmt, Gemm, Stmt]:
    """Return what brings operands into shared memory, `op` on these tiles, and what ends it.

    Before   gemm A_local, B_shared, C_local
    After    a_tile <- A_local;  barrier;  gemm a_tile, B_shared, C_local;  barrier

    `a` and `b` tell which of the operands, held in registers, are moved.
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
