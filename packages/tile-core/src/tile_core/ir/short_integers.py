"""Integers shorter than C's int: which of them hold less than C would have computed."""

from __future__ import annotations

from tile_core.dtypes import DType
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Select, Unary, UnaryOp

RING = frozenset(
    {
        BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL,
        BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR,
    }
)  # fmt: skip
"""Operations whose low bits follow from those of their operands."""


def is_short(dtype: DType) -> bool:
    """Whether C computes in int where an operand is of this type."""
    return dtype.is_int and dtype.bits < 32


def may_leave(amount: Expr, shifted: DType) -> bool:
    """Whether a short integer may be shifted by its width or more."""
    if not is_short(shifted):
        return False
    from tile_core.ir.interval import interval  # which computes with expressions itself

    reach = interval(amount, {})
    low, high = reach.low, reach.high
    return low is None or low < 0 or high is None or high >= shifted.bits


def loses_bits(expr: Expr) -> bool:
    """Whether a short integer may differ from what wider arithmetic would have given."""
    match expr:
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB | BinaryOp.MUL | BinaryOp.SHL):
            return True
        case Binary(op=BinaryOp.BITAND, a=a, b=b):
            return (loses_bits(a) and not _masks(b)) or (loses_bits(b) and not _masks(a))
        case Binary(op=BinaryOp.BITOR | BinaryOp.BITXOR, a=a, b=b):
            return loses_bits(a) or loses_bits(b)
        case Unary(op=op, a=a):
            return op is UnaryOp.NEG or a.dtype.kind.value == "uint" or loses_bits(a)
        case Select(then=then, otherwise=otherwise):
            return loses_bits(then) or loses_bits(otherwise)
    return False


def _masks(expr: Expr) -> bool:
    """Whether ``x & expr`` has the bits of `expr` at most, none of them a sign."""
    if isinstance(expr, Const):
        return expr.value >= 0
    return expr.dtype.kind.value == "uint" and not loses_bits(expr)
