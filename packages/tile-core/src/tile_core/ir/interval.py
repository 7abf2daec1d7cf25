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
from tile_core.ir.interval_arithmetic import UNBOUNDED, Ends, combine, hull, negated
from tile_core.ir.node import has_more_nodes
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included; None is unbounded."""

    low: int | None
    high: int | None

    @property
    def ends(self) -> Ends:
        """Both ends, as interval arithmetic takes them."""
        return self.low, self.high

    @property
    def is_negative(self) -> bool:
        """Whether every value is below zero."""
        return self.high is not None and self.high < 0

    @property
    def is_natural(self) -> bool:
        """Whether no value is below zero."""
        return self.low is not None and self.low >= 0


ANYTHING = Interval(None, None)
_DEPTH = 64
"""How deeply nested expressions are understood."""
_MOST_TERMS = 512
"""How many terms of expressions, written out, are compared one by one."""


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
