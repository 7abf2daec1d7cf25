"""Affine forms: integer expressions as exact sums of multiples, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias

from tile_core.arith.interval import Ends
from tile_core.ir.arith import as_expr, binary, const
from tile_core.ir.buffer import static_value
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Extent, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables, structure
from tile_core.ir.node import has_more_nodes
from tile_core.records import dataclass

Number: TypeAlias = "int | Fraction"
"""An exact rational; whole ones are ints, which are much faster."""


def _settled(number: Number) -> Number:
    return number.numerator if number.denominator == 1 else number


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant + sum(factor * atom)`` with exact rational factors.

    Parameters
    ----------
    terms
        Factor of each atom, none of them 0. Keys are equal for atoms written alike.
    atoms
        The expression behind each key.
    """

    constant: Number = 0
    terms: Mapping[object, Number] = field(default_factory=dict)
    atoms: Mapping[object, Expr] = field(default_factory=dict)

    @classmethod
    def of_atom(cls, key: object, atom: Expr) -> Linear:
        """Return ``1 * atom``."""
        return cls(0, {key: 1}, {key: atom})

    @classmethod
    def of_number(cls, value: Number) -> Linear:
        """Return a constant."""
        return cls(_settled(value))

    @property
    def is_number(self) -> bool:
        """Whether no atom is left."""
        return not self.terms

    @property
    def is_shift(self) -> bool:
        """Whether it is a number that integers of 64 bits with a sign can be shifted by."""
        return self.is_number and 0 <= self.constant < 63

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            total = terms.get(key, 0) + factor
            if total:
                terms[key] = _settled(total)
            else:
                terms.pop(key, None)
        constant = _settled(self.constant + other.constant)
        return Linear(constant, terms, {**self.atoms, **other.atoms})

    def __neg__(self) -> Linear:
        return self.times(-1)

    def __sub__(self, other: Linear) -> Linear:
        return self + -other

    def times(self, factor: Number) -> Linear:
        """Return every factor and the constant multiplied."""
        if not factor:
            return Linear()
        terms = {key: _settled(value * factor) for key, value in self.terms.items()}
        return Linear(_settled(self.constant * factor), terms, self.atoms)

    def plus(self, number: Number) -> Linear:
        """Return this plus a number."""
        return Linear(_settled(self.constant + number), self.terms, self.atoms)

    def replaced(self, key: object, by: Linear) -> Linear:
        """Return this with the atom `key` replaced."""
        rest = dict(self.terms)
        factor = rest.pop(key)
        return Linear(self.constant, rest, self.atoms) + by.times(factor)

    def parts(self) -> Iterator[tuple[object, Number, Expr]]:
        """Yield key, factor and expression of each term."""
        for key, factor in self.terms.items():
            yield key, factor, self.atoms[key]


@dataclass(frozen=True, slots=True)
class Bound:
    """``low <= variable <= high`` and when it was learnt; None is unbounded.

    Parameters
    ----------
    is_compared
        Nothing is known of the variable but comparisons: it is no index, it may be any number.
    """

    low: Linear | None
    high: Linear | None
    order: int
    is_compared: bool = False


def whole_between(low: Number | None, high: Number | None) -> Ends:
    """Return the bounds of whole numbers between two numbers."""
    return None if low is None else math.ceil(low), None if high is None else math.floor(high)


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
        return 0 if a is b else as_expr(a) - b
    left = _difference(a, b, together)
    if left.is_number:
        return int(left.constant)
    if len(left.terms) == 1:  # one atom times a number: keep the short form
        ((_, factor, atom),) = left.parts()
        if factor == 1:
            return atom + int(left.constant)
    if isinstance(b, int):
        return as_expr(a) - b
    return as_expr(a, b.dtype) - b


def _difference(a: Extent, b: Extent, together: bool) -> Linear:
    terms: dict[object, int] = {}
    atoms: dict[object, Expr] = {}
    constant = _collect(a, 1, terms, atoms, together) + _collect(b, -1, terms, atoms, together)
    return Linear(constant, {key: count for key, count in terms.items() if count}, atoms)


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
