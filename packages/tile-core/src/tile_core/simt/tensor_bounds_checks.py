"""Which accesses of tensors can leave the tensor, and what happens then."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.in_range import open_ends
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import all_of, as_expr, binary, cast, const
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.passes.guards.registry import note_guard
from tile_core.simt.context import SimtContext


def inside(buffer: Buffer, indices: Sequence[Expr], ctx: SimtContext) -> Expr | None:
    """Return the condition under which an element exists, or None if it certainly does.

    Before   A[bx*64 + i, k], 0 <= k < K known
    After    bx*64 + i < M

    Only tensors are guarded: the author of a kernel stays inside of tiles. Each comparison
    that the context proves is left out.
    """
    if not (ctx.guarded and buffer.scope.is_global):
        return None
    conditions: list[Expr] = []
    for axis, index in enumerate(indices):
        conditions += _missing(buffer, axis, index, ctx.env)
    return all_of(conditions)


def _missing(buffer: Buffer, axis: int, index: Expr, env: ConstraintSet) -> list[Expr]:
    extent = buffer.shape[axis]
    below, above = open_ends(index, extent, env)
    found: list[Expr] = []
    if below:
        note_guard(buffer, axis, index, env, from_below=True)
        found.append(binary(BinaryOp.GE, index, 0))
    if above:
        note_guard(buffer, axis, index, env)
        found.append(binary(BinaryOp.LT, index, as_expr(extent)))
    return found


def safe_value(buffer: Buffer, ctx: SimtContext) -> Expr:
    """Return what a load outside of `buffer` gives: 0, or what the program states."""
    stated = ctx.safe_values.get(buffer)
    return const(0, buffer.dtype) if stated is None else cast(stated, buffer.dtype)
