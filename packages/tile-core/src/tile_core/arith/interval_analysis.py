"""Bounds of integer expressions from those of their leaves, one step per node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tile_core.arith.affine import subtract
from tile_core.arith.interval import UNBOUNDED, Ends, Interval, combine, compare, hull, negated
from tile_core.dtypes import DType
from tile_core.ir.build_expr import integer_bounds
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Extent,
    Select,
    Unary,
    UnaryOp,
    Var,
)

_TRUTH: Ends = (0, 1)


class IntervalAnalysis:
    """Interval arithmetic over expressions; what was worked out is kept by node.

    Those who derive from it say what variables, loads and calls can be, and what the type of an
    expression makes of an exact result. Here nothing is known of variables, and nothing overflows.
    """

    __slots__ = ("_depth", "known")

    def __init__(self, depth: int = 64) -> None:
        """Understand expressions that are nested `depth` deep; deeper ones are like loads."""
        self.known: dict[Expr, Ends] = {}
        self._depth = depth

    def of(self, expr: Extent) -> Ends:
        """Return bounds of an integer or truth value: every value that it can have is within."""
        if isinstance(expr, int):
            return expr, expr
        found = self.known.get(expr)
        if found is None:
            if self._depth == 0:
                return self.leaf(expr)
            self._depth -= 1
            found = self.known[expr] = self.derived(expr)
            self._depth += 1
        return found

    def derived(self, expr: Expr) -> Ends:
        """Return bounds of `expr` from those of its parts."""
        rule = _RULES.get(type(expr))
        return self.leaf(expr) if rule is None else rule(self, expr)

    def part(self, expr: Expr) -> Ends:
        """Return bounds of an operand."""
        return self.of(expr)

    def variable(self, var: Var) -> Ends:
        """Return bounds of a variable."""
        return promised(var)

    def leaf(self, expr: Expr) -> Ends:
        """Return bounds of what is no arithmetic, such as a load."""
        return limits_of_short(expr.dtype)

    def fitted(self, exact: Ends, expr: Expr) -> Ends:
        """Return bounds of `expr`, given those of its exact result."""
        return exact


class AtomIntervals(IntervalAnalysis):
    """Bounds of what is not linear, from all that somebody knows of its parts.

    `variable` and `part` give bounds of variables, and of operands.
    """

    __slots__ = ("_part", "_variable")

    def __init__(self, variable: Callable[[Var], Ends], part: Callable[[Expr], Ends]) -> None:
        super().__init__()
        self._variable, self._part = variable, part

    def variable(self, var: Var) -> Ends:
        """Return what is known of a variable."""
        return self._variable(var)

    def part(self, expr: Expr) -> Ends:
        """Return what is known of an operand."""
        return self._part(expr)


def promised(var: Var) -> Ends:
    """Return what the type and the contract of a variable promise."""
    low, high = limits_of_short(var.dtype)
    contract = var.contract
    if contract is None:
        return low, high
    return max(contract.smallest, low or contract.smallest), (
        high if contract.largest is None else contract.largest if high is None
        else min(high, contract.largest)
    )  # fmt: skip


def is_widening(dtype: DType, other: DType) -> bool:
    """Whether every number of an integer type is one of another."""
    if dtype.kind is other.kind:
        return dtype.bits >= other.bits
    return other.kind.value == "uint" and dtype.bits > other.bits


def limits_of_short(dtype: DType) -> Ends:
    """Return the limits of a type that are so narrow that they say something of an index."""
    if dtype.is_bool:
        return _TRUTH
    if dtype.is_int and dtype.bits <= 16:
        return integer_bounds(dtype)
    return (0, None) if dtype.kind.value == "uint" else UNBOUNDED


class _OfRanges(IntervalAnalysis):
    __slots__ = ("ranges",)

    def __init__(self, ranges: Mapping[Var, Interval]) -> None:
        super().__init__()
        self.ranges = ranges

    def variable(self, var: Var) -> Ends:
        known = self.ranges.get(var)
        return promised(var) if known is None else known.ends


def interval(expr: Extent, ranges: Mapping[Var, Interval]) -> Interval:
    """Return bounds of an integer expression, given those of its variables.

    The result contains every value the expression can take without integer overflow; what
    is not understood (loads, calls, what is nested very deeply) has the bounds of its type if
    that is a short one.
    """
    return Interval(*_OfRanges(ranges).of(expr))


def _const(bounds: IntervalAnalysis, expr: Const) -> Ends:
    if expr.dtype.is_float:
        return bounds.leaf(expr)
    value = int(expr.value)
    return value, value


def _binary(bounds: IntervalAnalysis, expr: Binary) -> Ends:
    if not (expr.a.dtype.is_int or expr.a.dtype.is_bool):
        return bounds.leaf(expr)
    if expr.op is BinaryOp.SUB and isinstance(known := subtract(expr.a, expr.b), int):
        least, most = integer_bounds(expr.dtype)
        if least <= known <= most:
            return known, known
    a, b = bounds.part(expr.a), bounds.part(expr.b)
    if expr.dtype.is_bool:
        return compare(expr.op, a, b)
    return bounds.fitted(combine(expr.op, a, b), expr)


def _unary(bounds: IntervalAnalysis, expr: Unary) -> Ends:
    if not (expr.dtype.is_int or expr.dtype.is_bool):
        return bounds.leaf(expr)
    low, high = negated(bounds.part(expr.a))
    if expr.op is UnaryOp.NEG:
        return bounds.fitted((low, high), expr)
    # All bits flipped is what is missing to the largest number: -1 if there is a sign, else ...
    most = 1 if expr.op is UnaryOp.NOT else -1
    if expr.op is not UnaryOp.NOT and expr.dtype.kind.value == "uint":
        most = integer_bounds(expr.dtype)[1]
    flipped = None if low is None else most + low, None if high is None else most + high
    return bounds.fitted(flipped, expr)


def _cast(bounds: IntervalAnalysis, expr: Cast) -> Ends:
    if not (expr.dtype.is_int or expr.dtype.is_bool) or not (
        expr.value.dtype.is_int or expr.value.dtype.is_bool
    ):
        return bounds.leaf(expr)
    low, high = bounds.part(expr.value)
    least, most = _TRUTH if expr.dtype.is_bool else integer_bounds(expr.dtype)
    assert least is not None
    assert most is not None
    fits = low is not None and high is not None and least <= low and high <= most
    return (low, high) if fits else bounds.leaf(expr)


_RULES: dict[type, Callable[[Any, Any], Ends]] = {
    Const: _const,
    Var: lambda bounds, expr: bounds.variable(expr),
    Binary: _binary,
    Unary: _unary,
    Select: lambda bounds, expr: hull(bounds.part(expr.then), bounds.part(expr.otherwise)),
    Cast: _cast,
}
