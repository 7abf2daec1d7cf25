"""Bounds of integer expressions, and exact differences of linear ones."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.ir import arith
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Extent,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included; None is unbounded."""

    low: int | None
    high: int | None

    @property
    def is_negative(self) -> bool:
        """Whether every value is below zero."""
        return self.high is not None and self.high < 0

    @property
    def is_natural(self) -> bool:
        """Whether no value is below zero."""
        return self.low is not None and self.low >= 0


ANYTHING = Interval(None, None)


def interval(expr: Extent, ranges: Mapping[Var, Interval]) -> Interval:
    """Return bounds of an integer expression, given those of its variables.

    The result contains every value the expression can take without integer overflow; what
    is not understood (loads, calls, bit operations) is unbounded.
    """
    if isinstance(expr, int):
        return Interval(expr, expr)
    match expr:
        case Const(value=value) if not expr.dtype.is_float:
            return Interval(int(value), int(value))
        case Var():
            return ranges.get(expr) or _promised(expr)
        case Cast(value=value, dtype=dtype) if dtype.is_int and value.dtype.is_int:
            inner = interval(value, ranges)
            low, high = arith.integer_bounds(dtype)
            fits = inner.low is not None and inner.high is not None
            return inner if fits and low <= (inner.low or 0) <= (inner.high or 0) <= high else (
                ANYTHING
            )  # fmt: skip
        case Unary(op=UnaryOp.NEG, a=a):
            return _negated(interval(a, ranges))
        case Select(then=then, otherwise=otherwise):
            return _hull(interval(then, ranges), interval(otherwise, ranges))
        case Binary(op=op, a=a, b=b) if expr.dtype.is_int:
            return _binary(op, interval(a, ranges), interval(b, ranges))
    return ANYTHING


def _promised(var: Var) -> Interval:
    contract = var.contract
    return ANYTHING if contract is None else Interval(contract.smallest, contract.largest)


def _negated(x: Interval) -> Interval:
    return Interval(None if x.high is None else -x.high, None if x.low is None else -x.low)


def _hull(x: Interval, y: Interval) -> Interval:
    low = None if x.low is None or y.low is None else min(x.low, y.low)
    high = None if x.high is None or y.high is None else max(x.high, y.high)
    return Interval(low, high)


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _binary(op: BinaryOp, x: Interval, y: Interval) -> Interval:
    match op:
        case BinaryOp.ADD:
            return Interval(_plus(x.low, y.low), _plus(x.high, y.high))
        case BinaryOp.SUB:
            return _binary(BinaryOp.ADD, x, _negated(y))
        case BinaryOp.MUL:
            return _product(x, y)
        case BinaryOp.FLOORDIV if y.low is not None and y.low > 0:
            return _quotient(x, y)
        case BinaryOp.FLOORMOD if y.low is not None and y.low > 0:
            high = None if y.high is None else y.high - 1
            if x.is_natural and x.high is not None:
                high = x.high if high is None else min(high, x.high)
            return Interval(0, high)
        case BinaryOp.MIN:
            known = [h for h in (x.high, y.high) if h is not None]
            low = None if x.low is None or y.low is None else min(x.low, y.low)
            return Interval(low, min(known, default=None))
        case BinaryOp.MAX:
            return _negated(_binary(BinaryOp.MIN, _negated(x), _negated(y)))
    return ANYTHING


def _product(x: Interval, y: Interval) -> Interval:
    if None not in (x.low, x.high, y.low, y.high):
        ends = [a * b for a in (x.low or 0, x.high or 0) for b in (y.low or 0, y.high or 0)]
        return Interval(min(ends), max(ends))
    if x.is_natural and y.is_natural:
        return Interval((x.low or 0) * (y.low or 0), None)
    if (x.is_negative and y.low is not None and y.low > 0) or (
        y.is_negative and x.low is not None and x.low > 0
    ):
        return Interval(None, -1)
    return ANYTHING


def _quotient(x: Interval, y: Interval) -> Interval:
    """Floor division by something positive."""
    low_by, high_by = y.low or 1, y.high
    low: int | None = None
    if x.low is not None:
        low = x.low // low_by if x.low < 0 else (0 if high_by is None else x.low // high_by)
    high: int | None = None
    if x.high is not None:
        far = -1 if high_by is None else x.high // high_by
        high = x.high // low_by if x.high >= 0 else far
    return Interval(low, high)


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


def structure(expr: Expr, *, together: bool = False) -> object:
    """Return a hashable key equal for expressions written the same way on the same things.

    Loads are told apart by identity, as the element may change between two of them, unless
    the expressions are evaluated `together`.
    """
    match expr:
        case Const(value=value, dtype=dtype):
            return ("const", value, str(dtype))
        case Unary(op=op, a=a):
            return (op, structure(a, together=together))
        case Binary(op=op, a=a, b=b):
            return (op, structure(a, together=together), structure(b, together=together))
        case Cast(dtype=dtype, value=value):
            return ("cast", str(dtype), structure(value, together=together))
        case Load(buffer=buffer, indices=indices) if together:
            return ("load", buffer, *(structure(i, together=True) for i in indices))
    return Same(expr)


class Same:
    """A key that is equal for one expression object only; expressions' own `==` builds IR."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.expr is self.expr

    def __hash__(self) -> int:
        return hash(self.expr)
