"""How values move along the lanes of a vector: by a fixed step, or not at all."""

from __future__ import annotations

import math

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import as_expr, binary, cast, const
from tile_core.ir.expr import Binary, BinaryOp, Cast, Expr, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes ``0 <= var < count``, and what is known about everything else."""

    var: Var
    count: int
    env: ConstraintSet

    def last_step(self, factor: int) -> int:
        """Return how far `factor` takes the last lane from the first."""
        return abs(factor) * (self.count - 1)


@dataclass(frozen=True, slots=True)
class LaneStride:
    """``base + factor * lane``; the lane does not occur in `base`."""

    factor: int
    base: Expr


def along(expr: Expr, lanes: Lanes) -> LaneStride | None:
    """Return how an integer moves along the lanes; None if not by a fixed step.

    Before   ((tid*4 + v) // 32) * 64 + (tid*4 + v) % 32, 4 lanes v
    After    1 * v + (tid*4 // 32) * 64 + tid*4 % 32

    Quotients, remainders and exclusive ors by powers of two pass the lane through where it
    cannot carry into the next digit.
    """
    if lanes.var not in free_variables(expr):
        return LaneStride(0, expr)
    if expr is lanes.var:
        return LaneStride(1, const(0, expr.dtype))
    match expr:
        case Cast(value=value, dtype=dtype) if dtype.is_int and value.dtype.is_int:
            inner = along(value, lanes)
            if inner is None or dtype.bits < value.dtype.bits or dtype.kind is not value.dtype.kind:
                return None
            return LaneStride(inner.factor, cast(inner.base, dtype))
        case Unary(op=UnaryOp.NEG, a=a):
            inner = along(a, lanes)
            return None if inner is None else LaneStride(-inner.factor, -inner.base)
        case Binary(op=op, a=a, b=b) if expr.dtype.is_int:
            return _of_two(op, along(a, lanes), along(b, lanes), lanes)
    return None


def _of_two(
    op: BinaryOp, a: LaneStride | None, b: LaneStride | None, lanes: Lanes
) -> LaneStride | None:
    if a is None or b is None:
        return None
    if a.factor == b.factor == 0:
        return LaneStride(0, binary(op, a.base, b.base))
    match op:
        case BinaryOp.ADD:
            return LaneStride(a.factor + b.factor, a.base + b.base)
        case BinaryOp.SUB:
            return LaneStride(a.factor - b.factor, a.base - b.base)
        case BinaryOp.MUL:
            return _product(a, b)
        case BinaryOp.FLOORDIV | BinaryOp.FLOORMOD if b.factor == 0:
            return _division(op, a, static_value(b.base), lanes)
        case BinaryOp.BITXOR | BinaryOp.BITOR:
            return _bits(op, a, b, lanes) or _bits(op, b, a, lanes)
        case BinaryOp.SHL if b.factor == 0 and (places := static_value(b.base)) is not None:
            return LaneStride(a.factor << places, binary(op, a.base, b.base))
        case BinaryOp.SHR if b.factor == 0 and (places := static_value(b.base)) is not None:
            return _division(BinaryOp.FLOORDIV, a, 1 << places, lanes)
    return None


def _product(a: LaneStride, b: LaneStride) -> LaneStride | None:
    for moving, fixed in ((a, b), (b, a)):
        times = static_value(fixed.base)
        if fixed.factor == 0 and times is not None:
            return LaneStride(moving.factor * times, moving.base * fixed.base)
    return None


def _division(op: BinaryOp, a: LaneStride, divisor: int | None, lanes: Lanes) -> LaneStride | None:
    """Return the quotient or remainder where no lane but the first could enter a new digit."""
    if divisor is None or divisor <= 0:
        return None
    by = as_expr(divisor, a.base.dtype)
    base = binary(op, a.base, by)
    if a.factor % divisor == 0:
        return LaneStride(a.factor // divisor if op is BinaryOp.FLOORDIV else 0, base)
    room = math.gcd(lanes.env.multiple_of(a.base), divisor)
    if a.factor < 0 or lanes.last_step(a.factor) >= room:
        return None
    return LaneStride(0 if op is BinaryOp.FLOORDIV else a.factor, base)


def _bits(op: BinaryOp, a: LaneStride, b: LaneStride, lanes: Lanes) -> LaneStride | None:
    """Return ``(x + lane) ^ y`` where `y` has no bits as low as those of the lane."""
    if b.factor or a.factor <= 0:
        return None
    reach = 1 << lanes.last_step(a.factor).bit_length()
    for base in (a.base, b.base):
        if lanes.env.multiple_of(base) % reach:
            return None
    return LaneStride(a.factor, binary(op, a.base, b.base))


def is_steady(condition: Expr, lanes: Lanes) -> bool:
    """Whether a condition has one value for all lanes.

    ``x + lane < n`` has, where `x` and `n` are multiples of the number of lanes: none or all
    of them are inside.
    """
    if lanes.var not in free_variables(condition):
        return True
    match condition:
        case Unary(op=UnaryOp.NOT, a=a):
            return is_steady(a, lanes)
        case Binary(op=BinaryOp.AND | BinaryOp.OR, a=a, b=b):
            return is_steady(a, lanes) and is_steady(b, lanes)
        case Binary(op=(BinaryOp.GT | BinaryOp.GE) as op, a=a, b=b) if a.dtype.is_int:
            return _compares(op is BinaryOp.GT, b, a, lanes)
        case Binary(op=(BinaryOp.LT | BinaryOp.LE) as op, a=a, b=b) if a.dtype.is_int:
            return _compares(op is BinaryOp.LT, a, b, lanes)
        case Binary(op=BinaryOp.EQ | BinaryOp.NE, a=a, b=b) if a.dtype.is_int:
            left, right = along(a, lanes), along(b, lanes)
            return left is not None and right is not None and left.factor == right.factor
    return False


def _compares(strictly: bool, a: Expr, b: Expr, lanes: Lanes) -> bool:
    """Whether ``a < b`` (or ``a <= b``) holds for all lanes or for none."""
    left, right = along(a, lanes), along(b, lanes)
    if left is None or right is None:
        return False
    factor = right.factor - left.factor
    if factor == 0:
        return True
    if (factor < 0) is not strictly:
        return False
    room = lanes.env.multiple_of(right.base - left.base)
    return room == 0 or room > lanes.last_step(factor)
