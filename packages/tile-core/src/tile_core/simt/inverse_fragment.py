"""Which element of a tile a register of a thread holds: fragments read backwards."""

from __future__ import annotations

import numpy as np

from tile_core.errors import InternalError
from tile_core.ir.build_expr import all_of, as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.ir.stmt import If, Stmt
from tile_core.layout import Fragment
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext


@dataclass(frozen=True, slots=True)
class HeldElement:
    """The element in one register slot of one thread.

    `replica` is which of the copies of the element this is, from 0.
    """

    coords: tuple[Expr, ...]
    replica: Expr


def held(fragment: Fragment, thread: Expr, slot: Expr) -> HeldElement:
    """Return the element that register `slot` of `thread` holds.

    The fragment is one that `is_known`.
    """
    loop = loop_over(fragment)
    if loop.searched:
        raise InternalError(f"no formula finds what a register of {fragment} holds")
    coords = loop.coords_at(thread, slot, as_expr(0))
    replica = loop.replica_at(thread, slot, as_expr(0))
    return HeldElement(tuple(as_expr(x) for x in coords), as_expr(replica))


def slot_map(source: Fragment, target: Fragment, dim: int) -> tuple[int, ...] | None:
    """Return, for each slot of `source`, the slot of its row in `target`.

    Each thread that holds an element of a row holds that row in `target`, the tile without
    dimension `dim`. None if the slot depends on the thread.
    """
    slots = source.slot_table()
    table = target.slot_table()
    rows = np.broadcast_to(np.expand_dims(table, dim) if source.rank > 1 else table, slots.shape)
    found = np.full(source.slots, -1, dtype=np.int64)
    found[slots.reshape(-1)] = rows.reshape(-1)
    if (found < 0).any() or not np.array_equal(found[slots], rows):
        return None
    return tuple(int(x) for x in found)


def is_dense(fragment: Fragment) -> bool:
    """Whether every register slot of every thread holds an element that a formula finds."""
    loop = loop_over(fragment)
    return not (loop.ragged or loop.searched)


def is_known(fragment: Fragment) -> bool:
    """Whether a formula finds the element of every register slot that holds one."""
    return not loop_over(fragment).searched


def if_held(fragment: Fragment, slot: Expr, stmt: Stmt, ctx: SimtContext) -> Stmt:
    """Return `stmt` for the threads whose register `slot` holds an element of the tile."""
    if is_dense(fragment):
        return stmt
    inside: list[Expr] = []
    for coord, extent in zip(held(fragment, ctx.thread, slot).coords, fragment.shape, strict=True):
        inside += [binary(BinaryOp.GE, coord, 0), binary(BinaryOp.LT, coord, extent)]
    known = all_of(inside)
    return stmt if known is None else If(known, stmt, span=stmt.span)


def by_holders(fragment: Fragment, stmt: Stmt, ctx: SimtContext) -> Stmt:
    """Return `stmt` for the threads among which a tile is spread, the first of the block."""
    if fragment.thread_extent >= ctx.threads:
        return stmt
    return If(binary(BinaryOp.LT, ctx.thread, fragment.thread_extent), stmt, span=stmt.span)
