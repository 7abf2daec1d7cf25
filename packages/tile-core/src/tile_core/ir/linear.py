"""How an index moves with a loop variable: ``expr == coefficient * var + rest``."""

from __future__ import annotations

from tile_core.ir.arith import binary, const
from tile_core.ir.buffer import static_value
from tile_core.ir.evaluate import free_variables
from tile_core.ir.expr import Binary, BinaryOp, Expr, Extent, Var


def linear_in(expr: Extent, var: Var) -> tuple[int, Extent] | None:
    """Return ``(coefficient, rest)`` with ``expr == coefficient * var + rest``.

    `rest` does not mention `var`. None where `expr` is not linear in `var` with a
    coefficient known at compile time.
    """
    if isinstance(expr, int) or var not in free_variables(expr):
        return 0, expr
    if expr is var:
        return 1, 0
    if not isinstance(expr, Binary):
        return None
    left, right = linear_in(expr.a, var), linear_in(expr.b, var)
    if left is None or right is None:
        return None
    (p, a), (q, b) = left, right
    match expr.op:
        case BinaryOp.ADD:
            return p + q, _combine(BinaryOp.ADD, a, b)
        case BinaryOp.SUB:
            return p - q, _combine(BinaryOp.SUB, a, b)
        case BinaryOp.MUL:
            return _product(p, a, q, b)
    return None


def _combine(op: BinaryOp, a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return a + b if op is BinaryOp.ADD else a - b
    combined = binary(op, a, b)
    value = static_value(combined)
    return combined if value is None else value


def _product(p: int, a: Extent, q: int, b: Extent) -> tuple[int, Extent] | None:
    factor = static_value(b) if q == 0 else static_value(a) if p == 0 else None
    if factor is None:
        return None
    slope, rest = (p, a) if q == 0 else (q, b)
    return slope * factor, as_extent(binary(BinaryOp.MUL, _as_expr(rest), factor))


def _as_expr(extent: Extent) -> Expr:
    return const(extent) if isinstance(extent, int) else extent


def as_extent(expr: Expr) -> Extent:
    """Return the int that a constant expression is, or the expression."""
    value = static_value(expr)
    return expr if value is None else value
