"""Integers shorter than C's int: which of them hold less than C would have computed."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.dtypes import DType
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr, Select, Unary, UnaryOp, Var
from tile_launch.contract import Contract

MODULAR = frozenset(
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
    most = _most(amount)
    return most is None or most >= shifted.bits


def _most(expr: Expr) -> int | None:
    """Return what a number that is never negative is at most, by how it is written, or None."""
    most = _most_of(expr) if expr.dtype.is_int else None
    unsigned = expr.dtype.kind.value == "uint"
    return most if most is None or most < 2 ** (expr.dtype.bits - (not unsigned)) else None


def _most_of(expr: Expr) -> int | None:
    match expr:
        case Const(value=int() as value):
            return value if value >= 0 else None
        case Var(contract=Contract(smallest=low, largest=largest)):
            return largest if low >= 0 else None
        case Cast(value=value) if value.dtype.is_int:
            return _most(value)
        case Binary(op=BinaryOp.FLOORMOD, b=Const(value=int() as divisor)) if divisor > 0:
            return divisor - 1
        case Binary(op=op, a=a, b=b):
            left, right = _most(a), _most(b)
            if op is BinaryOp.BITAND:
                return min((most for most in (left, right) if most is not None), default=None)
            if left is None or right is None:
                return None
            known = _MOST.get(op)
            return None if known is None else known(left, right)
        case Select(then=a, otherwise=b):
            left, right = _most(a), _most(b)
            return None if left is None or right is None else max(left, right)
    return None


_MOST: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORDIV: lambda a, b: a,
    BinaryOp.SHR: lambda a, b: a,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}


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
