"""Integer and mixed arithmetic; Python numbers in give Python numbers out."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import reduce
from typing import Any

from tile_api.frontend.values import as_value
from tile_api.language.operands import call, here, is_number, is_static, scalar
from tile_core.errors import FrontendTypeError, FrontendValueError, TileError
from tile_core.ir import arith
from tile_core.ir.expr import BinaryOp, Expr, UnaryOp

__all__ = [
    "__ffs",
    "abs",
    "align_up",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cdiv",
    "ceildiv",
    "clamp",
    "clz",
    "fabs",
    "ffs",
    "floordiv",
    "floormod",
    "fmul",
    "likely",
    "max",
    "min",
    "popcount",
    "shift_left",
    "shift_right",
    "truncdiv",
    "truncmod",
]


def operate(op: BinaryOp, a: Any, b: Any) -> Expr:
    """Return ``a op b`` on scalar values, errors pointing at the user's line."""
    try:
        return arith.binary(op, scalar(a), scalar(b))
    except TileError as error:
        raise error.at(here()) from None


def _number(name: str, compute: Callable[[], Any]) -> Any:
    """Evaluate on Python numbers, turning Python's complaints into ours."""
    try:
        return compute()
    except (ZeroDivisionError, ValueError, TypeError) as error:
        raise FrontendValueError(
            f"T.{name}: {error}",
            span=here(),
            hint="this is computed by Python while the kernel is traced: change its operands",
        ) from error


def max(a: Any, b: Any, *more: Any) -> Any:
    """Return the largest value. If exactly one of two is NaN the other is returned."""
    if is_static(a, b, *more):
        return builtins.max(a, b, *more)
    return reduce(lambda x, y: operate(BinaryOp.MAX, x, y), (a, b, *more))


def min(a: Any, b: Any, *more: Any) -> Any:
    """Return the smallest value. If exactly one of two is NaN the other is returned."""
    if is_static(a, b, *more):
        return builtins.min(a, b, *more)
    return reduce(lambda x, y: operate(BinaryOp.MIN, x, y), (a, b, *more))


def abs(x: Any) -> Any:
    """Return the absolute value of `x`; differences of short integers are those of int32."""
    return builtins.abs(x) if is_number(x) else call("abs", arith.promoted(as_value(x)))


def clamp(x: Any, low: Any, high: Any) -> Any:
    """Return ``min(max(x, low), high)``."""
    return min(max(x, low), high)


def ceildiv(a: Any, b: Any) -> Any:
    """Return ``a / b`` rounded up, for a positive `b`.

    >>> ceildiv(3, 2)
    2
    """
    if is_static(a, b):
        return _number("ceildiv", lambda: -(-a // b))
    return operate(BinaryOp.FLOORDIV, operate(BinaryOp.ADD, a, operate(BinaryOp.SUB, b, 1)), b)


def align_up(value: Any, multiple: Any) -> Any:
    """Return the smallest multiple of `multiple` that is at least `value`.

    >>> align_up(13, 8)
    16
    """
    if is_static(value, multiple):
        return _number("align_up", lambda: -(-value // multiple) * multiple)
    return operate(BinaryOp.MUL, ceildiv(value, multiple), multiple)


def floordiv(a: Any, b: Any) -> Any:
    """Return the quotient rounded toward minus infinity, as Python's ``//``.

    Integers wrap: the lowest one over -1 is itself. The interpreter and the emulator refuse a
    divisor of zero (TL6505); compiled kernels return 0, and from the remainders the dividend.
    """
    if is_static(a, b):
        return _number("floordiv", lambda: a // b)
    return operate(BinaryOp.FLOORDIV, a, b)


def floormod(a: Any, b: Any) -> Any:
    """Return the remainder with the sign of `b`, as Python's ``%``."""
    if is_static(a, b):
        return _number("floormod", lambda: a % b)
    return operate(BinaryOp.FLOORMOD, a, b)


def truncdiv(a: Any, b: Any) -> Any:
    """Return the integer quotient rounded toward zero, as C's ``/``."""
    if is_static(a, b):
        size = _number("truncdiv", lambda: builtins.abs(a) // builtins.abs(b))
        return size if (a < 0) == (b < 0) else -size
    return operate(BinaryOp.TRUNCDIV, a, b)


def truncmod(a: Any, b: Any) -> Any:
    """Return the integer remainder with the sign of `a`, as C's ``%``."""
    if is_static(a, b):
        return a - b * truncdiv(a, b)
    return operate(BinaryOp.TRUNCMOD, a, b)


def shift_left(x: Any, bits: Any) -> Any:
    """Return ``x << bits``."""
    if is_static(x, bits):
        return _number("shift_left", lambda: x << bits)
    return operate(BinaryOp.SHL, x, bits)


def shift_right(x: Any, bits: Any) -> Any:
    """Return ``x >> bits``; signed integers keep their sign."""
    if is_static(x, bits):
        return _number("shift_right", lambda: x >> bits)
    return operate(BinaryOp.SHR, x, bits)


def bitwise_and(a: Any, b: Any) -> Any:
    """Return ``a & b`` of integers."""
    if is_static(a, b):
        return _number("bitwise_and", lambda: a & b)
    return operate(BinaryOp.BITAND, a, b)


def bitwise_or(a: Any, b: Any) -> Any:
    """Return ``a | b`` of integers."""
    if is_static(a, b):
        return _number("bitwise_or", lambda: a | b)
    return operate(BinaryOp.BITOR, a, b)


def bitwise_xor(a: Any, b: Any) -> Any:
    """Return ``a ^ b`` of integers."""
    if is_static(a, b):
        return _number("bitwise_xor", lambda: a ^ b)
    return operate(BinaryOp.BITXOR, a, b)


def bitwise_not(x: Any) -> Any:
    """Return `x` with every bit inverted."""
    if is_number(x):
        return _number("bitwise_not", lambda: ~x)
    try:
        return arith.unary(UnaryOp.BITNOT, as_value(x))
    except TileError as error:
        raise error.at(here()) from None


def popcount(x: Any) -> Expr:
    """Return the number of bits of the integer `x` that are one, as int32."""
    return _counted("popcount", x)


def clz(x: Any) -> Expr:
    """Return the number of zero bits above the highest one bit, as int32; all bits for 0."""
    return _counted("clz", x)


def ffs(x: Any) -> Expr:
    """Return the position of the lowest one bit, counted from 1, as int32; 0 for 0."""
    return _counted("ffs", x)


def _counted(name: str, x: Any) -> Expr:
    try:
        return call(name, x)
    except TileError as error:
        raise error.at(here()) from None


def likely(condition: Any) -> Any:
    """Return `condition`, which is expected to hold most of the time."""
    return scalar(condition)


def fmul(x: Any, y: Any) -> Any:
    """Return the product of two floats, rounded by itself: never fused into an fma."""
    if is_static(x, y):
        return x * y
    if not all(is_number(v) or as_value(v).dtype.is_float for v in (x, y)):
        raise FrontendTypeError(
            "T.fmul multiplies floating-point values", span=here(), hint="use the * operator"
        )
    return call("ieee_mul_rn", x, y)


fabs = abs
cdiv = ceildiv
__ffs = ffs
