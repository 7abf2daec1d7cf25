"""Linear expressions: the coefficient of a variable, and exact differences."""

from __future__ import annotations

from tile_core.ir import arith
from tile_core.ir.arith import binary, const
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Extent, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables, structure
from tile_core.ir.node import has_more_nodes


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


_MOST_TERMS = 512
"""How many terms of expressions, written out, are compared one by one."""


def subtract(a: Extent, b: Extent, *, together: bool = False) -> Extent:
    """Return ``a - b``, as an int where the difference does not depend on any variable.

    Sums, differences and products with constants are compared term by term, so
    ``(i*64 + 64) - i*64`` is 64.

    Parameters
    ----------
    together
        Both are evaluated at one moment, so that two loads of one element are equal.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if not (_is_small(a) and _is_small(b)):
        return 0 if a is b else arith.as_expr(a) - b
    terms: dict[object, int] = {}
    atoms: dict[object, Expr] = {}
    constant = _collect(a, 1, terms, atoms, together)
    constant += _collect(b, -1, terms, atoms, together)
    left = {key: count for key, count in terms.items() if count}
    if not left:
        return constant
    if len(left) == 1:  # one atom times a number: keep the short form
        ((key, count),) = left.items()
        if count == 1:
            return atoms[key] + constant
    if isinstance(b, int):
        return arith.as_expr(a) - b
    return arith.as_expr(a, b.dtype) - b


def _is_small(expr: Extent) -> bool:
    """Whether an expression has few terms once what it shares is written out."""
    return isinstance(expr, int) or not has_more_nodes(expr, _MOST_TERMS)


def same_extent(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal for all values of their variables, provably."""
    difference = subtract(a, b)
    return isinstance(difference, int) and difference == 0


def _collect(
    expr: Extent, factor: int, terms: dict[object, int], atoms: dict[object, Expr], together: bool
) -> int:
    """Add ``factor * expr`` to `terms`, keyed by structure; return the constant part."""

    def part(inner: Expr, by: int) -> int:
        return _collect(inner, by, terms, atoms, together)

    if isinstance(expr, int):
        return factor * expr
    match expr:
        case Const(value=value):
            return factor * int(value)
        case Binary(op=BinaryOp.ADD, a=a, b=b):
            return part(a, factor) + part(b, factor)
        case Binary(op=BinaryOp.SUB, a=a, b=b):
            return part(a, factor) + part(b, -factor)
        case Binary(op=BinaryOp.MUL, a=a, b=Const(value=value)):
            return part(a, factor * int(value))
        case Binary(op=BinaryOp.MUL, a=Const(value=value), b=b):
            return part(b, factor * int(value))
        case Unary(op=UnaryOp.NEG, a=a):
            return part(a, -factor)
    key = structure(expr, together=together)
    terms[key] = terms.get(key, 0) + factor
    atoms.setdefault(key, expr)
    return 0
