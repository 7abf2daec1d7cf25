"""Votes and reductions of warps as kernels mean them, on machines whose warps are wider."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import as_expr, binary, cast, const, select
from tile_core.ir.expr import BinaryOp, Call, Expr, Unary, UnaryOp
from tile_core.records import replace
from tile_core.simt.context import SimtContext

WARP = 32
"""Threads of a warp of the language, on every machine."""

_MASK, _ALL_LANES, _BOOL = (dtype_of(name) for name in ("uint32", "uint64", "bool"))
_REDUCTION = "warp_reduce_"


def within_language_warp(expr: Call, ctx: SimtContext) -> Expr:
    """Return an exchange among the 32 threads of the language's warp; its arguments are lowered.

    Before   ballot_sync(value > 0)
    After    cast(uint32, ballot(value > 0) >> (lane & 32))     (a machine of 64 lanes)

    A kernel that counts lanes means the same on every machine: several of its warps run
    together where a machine's are wider. Shuffles say their width themselves.
    """
    if ctx.machine.warp_size == WARP:
        return expr
    if expr.function.startswith(_REDUCTION):
        return replace(expr, args=(*expr.args, as_expr(WARP)))
    made = _VOTES.get(expr.function)
    return expr if made is None else made(expr, ctx)


def _own_part(name: str, args: tuple[Expr, ...], ctx: SimtContext) -> Expr:
    """Return the bits of the own warp of what all lanes of the machine's answer."""
    answer = Call(name, args, _ALL_LANES)
    first = cast(ctx.lane // WARP * WARP, _ALL_LANES)
    return cast(binary(BinaryOp.SHR, answer, first), _MASK)


def _ballot(expr: Call, ctx: SimtContext) -> Expr:
    return _own_part("ballot_sync", expr.args, ctx)


def _any(expr: Call, ctx: SimtContext) -> Expr:
    there = binary(BinaryOp.NE, _ballot(expr, ctx), const(0, _MASK))
    return cast(there, expr.dtype)


def _all(expr: Call, ctx: SimtContext) -> Expr:
    not_here = Unary(UnaryOp.NOT, expr.args[0], _BOOL)
    nowhere = binary(BinaryOp.EQ, _own_part("ballot_sync", (not_here,), ctx), const(0, _MASK))
    return cast(nowhere, expr.dtype)


def _running(expr: Call, ctx: SimtContext) -> Expr:
    return _own_part("activemask", (), ctx)


def _matching(expr: Call, ctx: SimtContext) -> Expr:
    return _own_part("match_any_sync", expr.args, ctx)


def _matching_all(expr: Call, ctx: SimtContext) -> Expr:
    running = _running(expr, ctx)
    everywhere = binary(BinaryOp.EQ, _matching(expr, ctx), running)
    return select(everywhere, running, const(0, _MASK))


_VOTES: dict[str, Callable[[Call, SimtContext], Expr]] = {
    "ballot_sync": _ballot,
    "any_sync": _any,
    "all_sync": _all,
    "activemask": _running,
    "match_any_sync": _matching,
    "match_all_sync": _matching_all,
}
