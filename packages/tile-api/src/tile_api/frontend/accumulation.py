"""Assignments to reducers that are fragments: ``acc[i] += x`` in a data-parallel loop."""

from __future__ import annotations

from tile_core.ir import build_expr
from tile_core.ir.expr import Binary, BinaryOp, Cast, Expr, Load
from tile_core.ir.names import Names
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import Store
from tile_core.ops.reduce import ReduceKind
from tile_core.ops.reducer import ReducerUpdate

_COMBINES = {"sum": BinaryOp.ADD, "max": BinaryOp.MAX, "min": BinaryOp.MIN}


def as_update(stmt: Store, op: str) -> Store | ReducerUpdate:
    """Return an assignment to a reducer as the update it means.

    Before   acc[i] = acc[i] + x                 (acc computes a sum)
    After    reducer_update(acc, SUM, [i], x)

    Conservative: anything but the reducer's own operation on the same element stays a store.
    """
    value = _converted(stmt.value)
    if not isinstance(value, Binary) or value.op is not _COMBINES.get(op):
        return stmt
    for old, new in ((value.a, value.b), (value.b, value.a)):
        if _is_element(_converted(old), stmt):
            added = build_expr.cast(new, stmt.buffer.dtype)
            kind = ReduceKind(op)
            return ReducerUpdate(stmt.buffer, kind, stmt.indices, added, span=stmt.span)
    return stmt


def _converted(value: Expr) -> Expr:
    """Return what a conversion between the reducer's and the operand's dtype converts."""
    return value.value if isinstance(value, Cast) else value


def _is_element(value: Expr, stmt: Store) -> bool:
    if not isinstance(value, Load) or value.buffer is not stmt.buffer:
        return False
    names = Names()
    return all(
        print_expr(a, names) == print_expr(b, names)
        for a, b in zip(value.indices, stmt.indices, strict=True)
    )
