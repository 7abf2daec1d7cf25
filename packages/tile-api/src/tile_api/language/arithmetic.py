"""Integer and mixed arithmetic; Python numbers in give Python numbers out."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import reduce
from typing import Any

from tile_api.frontend.values import as_value
from tile_api.language.operands import call, here, is_number, is_static, scalar
from tile_core.errors import FrontendTypeError, FrontendValueError, TileError
from tile_core.ir import build_expr
from tile_core.ir.expr import BinaryOp, Expr, UnaryOp
from tile_core.ir.operations import BINARY

__all__ = [
    "__ffs", "abs", "align_up", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cdiv",
    "ceildiv", "clamp", "clz", "fabs", "ffs", "floordiv", "floormod", "fmul", "likely", "max",
    "min", "popcount", "shift_left", "shift_right", "truncdiv", "truncmod",
]  # fmt: skip


def operate(op: BinaryOp, a: Any, b: Any) -> Expr:
    """Return ``a op b`` on scalar values, errors pointing at the user's line."""
    try:
        return build_expr.binary(op, scalar(a), scalar(b))
    except TileError as error:
        raise error.at(here()) from None


def _number(name: str, compute: Callable[[], Any]) -> Any:
    """Evaluate on Python numbers, turning Python's complaints into ours."""
    try:
        return compute()
    except (ZeroDivisionError, ValueError, TypeError) as error:
        hint = "this is computed by Python while the kernel is traced: change its operands"
        raise FrontendValueError(f"T.{name}: {error}", span=here(), hint=hint) from error


def max(a: Any, b: Any, *more: Any, nan_propagate: bool = False) -> Any:
    """Return the largest value.

    If exactly one of two is NaN the other is returned; with `nan_propagate` NaN is, as in NumPy.
    """
    if is_static(a, b, *more):
        return builtins.max(a, b, *more)
    if nan_propagate:
        return reduce(lambda x, y: _or_nan(BinaryOp.LT, x, y), (a, b, *more))
    return reduce(lambda x, y: operate(BinaryOp.MAX, x, y), (a, b, *more))


def min(a: Any, b: Any, *more: Any, nan_propagate: bool = False) -> Any:
    """Return the smallest value.

    If exactly one of two is NaN the other is returned; with `nan_propagate` NaN is, as in NumPy.
    """
    if is_static(a, b, *more):
        return builtins.min(a, b, *more)
    if nan_propagate:
        return reduce(lambda x, y: _or_nan(BinaryOp.GT, x, y), (a, b, *more))
    return reduce(lambda x, y: operate(BinaryOp.MIN, x, y), (a, b, *more))


def _or_nan(op: BinaryOp, a: Any, b: Any) -> Expr:
    """Return `b` where ``a op b`` or `b` is NaN, else `a`, which is then what to return if NaN."""
    if is_number(a):
        a, b = b, a
    takes_b = operate(op, a, b)
    if not is_number(b):
        takes_b = operate(BinaryOp.OR, takes_b, operate(BinaryOp.NE, b, b))
    return build_expr.select(takes_b, scalar(b), scalar(a))


def abs(x: Any) -> Any:
    """Return the absolute value of `x`; differences of short integers are those of int32."""
    return builtins.abs(x) if is_number(x) else call("abs", build_expr.promoted(as_value(x)))


def clamp(dst: Any, min_val: Any, max_val: Any) -> Any:
    """Return ``min(max(dst, min_val), max_val)``."""
    return min(max(dst, min_val), max_val)


def ceildiv(lhs: Any, rhs: Any) -> Any:
    """Return ``lhs / rhs`` rounded up, for a positive `rhs`.

    >>> ceildiv(3, 2)
    2
    """
    if is_static(lhs, rhs):
        return _number("ceildiv", lambda: -(-lhs // rhs))
    most = operate(BinaryOp.ADD, lhs, operate(BinaryOp.SUB, rhs, 1))
    return operate(BinaryOp.FLOORDIV, most, rhs)


def align_up(x: Any, y: Any) -> Any:
    """Return the smallest multiple of `y` that is at least `x`.

    >>> align_up(13, 8)
    16
    """
    if is_static(x, y):
        return _number("align_up", lambda: -(-x // y) * y)
    return operate(BinaryOp.MUL, ceildiv(x, y), y)


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


def _operator(name: str, op: BinaryOp, meaning: str) -> Callable[[Any, Any], Any]:
    def function(x: Any, y: Any) -> Any:
        if is_static(x, y):
            return _number(name, lambda: BINARY[op](x, y))
        return operate(op, x, y)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {meaning}."
    return function


shift_left = _operator("shift_left", BinaryOp.SHL, "``x << y``")
shift_right = _operator("shift_right", BinaryOp.SHR, "``x >> y``; signed integers keep their sign")
bitwise_and = _operator("bitwise_and", BinaryOp.BITAND, "``x & y`` of integers")
bitwise_or = _operator("bitwise_or", BinaryOp.BITOR, "``x | y`` of integers")
bitwise_xor = _operator("bitwise_xor", BinaryOp.BITXOR, "``x ^ y`` of integers")


def bitwise_not(x: Any) -> Any:
    """Return `x` with every bit inverted."""
    if is_number(x):
        return _number("bitwise_not", lambda: ~x)
    try:
        return build_expr.unary(UnaryOp.BITNOT, as_value(x))
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


def likely(cond: Any) -> Any:
    """Return `cond`, which is expected to hold most of the time."""
    return scalar(cond)


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
