"""Decisions between warps are made on a value that the lanes of a warp are known to share."""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Var
from tile_core.ir.stmt import If, Let, Seq, Stmt
from tile_core.machine import SimtMachine
from tile_core.records import replace

_FEATURE = "async_mma"
"""Where instructions of several warps take operands from registers that lanes share."""


def make_branches_warp_uniform(
    stmt: Stmt, thread: Var, name_hint: str, machine: SimtMachine
) -> Stmt:
    """Return `stmt` with alternatives of whole warps chosen by the number of the warp.

    Before   if (tid >= 256) { … } else { … }
    After    warp = shfl(tid >> 5, 0);  if (warp >= 8) { … } else { … }

    After a comparison of thread numbers the assembler has to believe that the lanes of a warp
    parted, and keeps in a register of each lane what they could share. It trusts an exchange.

    Parameters
    ----------
    thread
        The number of the thread in its block.
    name_hint
        How the number of the warp is called.
    """
    if not machine.has(_FEATURE) or not isinstance(stmt, Seq):
        return stmt
    warp, width = Var(name_hint, dtype_of("int32")), machine.warp_size
    made: list[Stmt] = []
    is_named = False
    for item in stmt.body:
        if isinstance(item, Seq):
            made.append(make_branches_warp_uniform(item, thread, name_hint, machine))
            continue
        decided = _decided(item, thread, warp, width)
        if decided is not item and not is_named:
            own = binary(BinaryOp.FLOORDIV, thread, as_expr(width, thread.dtype))
            lane = (as_expr(0), as_expr(width))
            made.append(Let(warp, Call("shfl_sync", (own, *lane), thread.dtype)))
            is_named = True
        made.append(decided)
    return replace(stmt, body=tuple(made))


def _decided(stmt: Stmt, thread: Var, warp: Var, width: int) -> Stmt:
    """Return a decision between warps, and those among its alternatives, by the warp's number."""
    if not isinstance(stmt, If) or stmt.otherwise is None:
        return stmt
    cond = _by_warp(stmt.cond, thread, warp, width)
    if cond is None:
        return stmt
    return replace(stmt, cond=cond, otherwise=_last(stmt.otherwise, thread, warp, width))


def _last(stmt: Stmt, thread: Var, warp: Var, width: int) -> Stmt:
    """Return the other alternatives; the last may have a condition and none behind it."""
    if not isinstance(stmt, If):
        return stmt
    cond = _by_warp(stmt.cond, thread, warp, width)
    if cond is None:
        return stmt
    rest = None if stmt.otherwise is None else _last(stmt.otherwise, thread, warp, width)
    return replace(stmt, cond=cond, otherwise=rest)


def _by_warp(cond: Expr, thread: Var, warp: Var, width: int) -> Expr | None:
    """Return a condition on threads as one on warps, if it does not divide a warp."""
    match cond:
        case Binary(op=BinaryOp.AND, a=a, b=b):
            left, right = (_by_warp(part, thread, warp, width) for part in (a, b))
            return None if left is None or right is None else replace(cond, a=left, b=right)
        case Binary(op=BinaryOp.GE | BinaryOp.LT, a=Var() as line, b=Const(value=bound)) if (
            line is thread and int(bound) % width == 0
        ):
            return replace(cond, a=warp, b=as_expr(int(bound) // width, warp.dtype))
    return None
