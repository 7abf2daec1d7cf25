"""Bounds of integer expressions from ranges of their variables, without overflow."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.arith.interval import ANYTHING, UNBOUNDED, Ends, Interval, combine, hull, negated
from tile_core.arith.linear import subtract
from tile_core.ir import arith
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

_DEPTH = 64
"""How deeply nested expressions are understood."""


def interval(expr: Extent, ranges: Mapping[Var, Interval]) -> Interval:
    """Return bounds of an integer expression, given those of its variables.

    The result contains every value the expression can take without integer overflow; what
    is not understood (loads, calls, what is nested very deeply) is unbounded.
    """
    return _interval_of(expr, ranges, {}, _DEPTH)


def _interval_of(
    expr: Extent, ranges: Mapping[Var, Interval], known: dict[Expr, Interval], depth: int
) -> Interval:
    """Return bounds of an expression; `known` are those of parts that were met before."""
    if isinstance(expr, int):
        return Interval(expr, expr)
    if not isinstance(expr, Binary | Select | Unary | Cast):
        return _interval_here(expr, ranges, known, depth)
    if depth == 0:
        return ANYTHING
    if expr not in known:
        known[expr] = _interval_here(expr, ranges, known, depth - 1)
    return known[expr]


def _interval_here(
    expr: Expr, ranges: Mapping[Var, Interval], known: dict[Expr, Interval], depth: int
) -> Interval:
    def interval(part: Expr, ranges: Mapping[Var, Interval]) -> Interval:
        return _interval_of(part, ranges, known, depth)

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
            return _interval(negated(interval(a, ranges).ends))
        case Select(then=then, otherwise=otherwise):
            return _interval(hull(interval(then, ranges).ends, interval(otherwise, ranges).ends))
        case Binary(op=op, a=a, b=b) if expr.dtype.is_int:
            if op is BinaryOp.SUB and isinstance(difference := subtract(a, b), int):
                return Interval(difference, difference)
            return _interval(combine(op, interval(a, ranges).ends, interval(b, ranges).ends))
    return ANYTHING


def _interval(ends: Ends) -> Interval:
    return ANYTHING if ends == UNBOUNDED else Interval(*ends)


def _promised(var: Var) -> Interval:
    contract = var.contract
    return ANYTHING if contract is None else Interval(contract.smallest, contract.largest)
