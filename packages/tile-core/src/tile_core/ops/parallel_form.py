"""Element-wise tile operators as one parallel loop each."""

from __future__ import annotations

from typing import Any, TypeGuard

from tile_core.errors import InternalError
from tile_core.ir.buffer import Region, Scope, static_value
from tile_core.ir.build_expr import INT32, all_of, as_expr, cast, const, truth
from tile_core.ir.expr import Expr, Var
from tile_core.ir.stmt import For, If, Parallel, Seq, Stmt, Store
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.serial_forms import expand


def is_element_wise(op: object) -> TypeGuard[TileOperator]:
    """Whether `op` does the same to each element of a tile, in any order."""
    return isinstance(op, TileOperator) and op.execution is Execution.ELEMENT_WISE


def parallel_nest(stmt: Stmt) -> Stmt:
    """Return perfectly nested loops whose iterations are independent as one data-parallel loop.

    Before   for i in range(4): for j in range(8): T[i, j] = 0
    After    parallel i, j in (4, 8): T[i, j] = 0
    """
    variables, extents, body = _opened(stmt)
    if not variables:
        return stmt
    return Parallel(tuple(variables), tuple(extents), body, span=stmt.span)


def _opened(stmt: Stmt) -> tuple[list[Var], list[Expr], Stmt]:
    """Return the indices and extents of perfectly nested loops, and what they hold."""
    variables: list[Var] = []
    extents: list[Expr] = []
    body = stmt
    while isinstance(body, For):
        if static_value(body.start) != 0 or static_value(body.step) != 1:
            raise InternalError("an expansion counts from 0 in steps of 1", span=stmt.span)
        variables.append(body.var)
        extents.append(body.stop)
        body = body.body
    return variables, extents, body


def as_parallel(op: TileOperator) -> Parallel:
    """Return the parallel loop that does what `op` does, one element per iteration.

    Before   copy A[bx*64:+64, 0:+32], T
    After    parallel i, j in (64, 32): T[i, j] = cast(A[bx*64 + i, j])

    The copy of a single element is a loop of extents (), with one iteration; of extents (1,)
    where a tile is spread over threads, some of which hold the element. A part of a
    register tile whose extents are known only at run time is filled by a loop over all of the
    tile, which its holders run.

    Raises `InternalError` if `op` is not element-wise.
    """
    if not is_element_wise(op):
        raise InternalError(f"{op.mnemonic!r} is not an element-wise operator", span=op.span)
    match op:
        case Fill(dst=Region(static_extents=None)) if op.dst.buffer.scope is Scope.FRAGMENT:
            return _masked(op)
    names, extents, body = _opened(expand(op))
    if not names and any(
        b.scope.is_spread and b.static_shape != (1,) * b.rank for b in op.buffers()
    ):
        names, extents = [Var("i", INT32)], [as_expr(1)]
    hints: dict[str, Any] = {}
    if isinstance(op, Copy):
        hints = {"coalesced_width": op.coalesced_width, "loop_layout": op.loop_layout}
    if not isinstance(body, Seq):
        body = Seq((body,), span=op.span)
    return Parallel(tuple(names), tuple(extents), body, span=op.span, **hints)


def _masked(op: Fill) -> Parallel:
    """Return a loop over the whole buffer that fills what is inside of the region."""
    buffer = op.dst.buffer
    extents = tuple(as_expr(e) for e in buffer.shape)
    names = tuple(Var("ijklmnop"[k % 8], e.dtype) for k, e in enumerate(extents))
    inside: list[Expr] = [const(True)]
    for var, start, extent in zip(names, op.dst.starts, op.dst.extents, strict=True):
        inside += [var >= start, var < as_expr(start) + extent]
    store = Store(buffer, names, cast(op.value, buffer.dtype), span=op.span)
    return Parallel(names, extents, If(truth(all_of(inside)), store, span=op.span), span=op.span)
