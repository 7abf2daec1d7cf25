"""Affine forms: integer expressions as exact sums of multiples, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import field
from fractions import Fraction
from typing import Any, TypeAlias

from tile_core.arith.interval import Ends
from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Extent, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables, structure
from tile_core.ir.node import analysis, has_more_nodes
from tile_core.records import dataclass

Number: TypeAlias = "int | Fraction"
"""An exact rational; whole ones are ints, which are much faster."""
Operands: TypeAlias = "tuple[BinaryOp, Linear, Linear | int] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """Something that a sum takes as a whole."""

    key: Hashable  # equal for atoms that are the same
    expr: Expr
    number: int = 0  # when it was first met: sums are in this order
    # low, high: numbers that it certainly lies between.
    low: int = -(2**64)
    high: int = 2**64
    operands: Operands = None  # what it is made of, where rules look inside
    acts: bool = False  # evaluating it does something: it must not be dropped
    multiple: int = 1  # a number that divides its value
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.key))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Atom) or self._hash != other._hash:
            return self is other
        return self.key is other.key or self.key == other.key  # two variables have no `==`


def _settled(number: Number) -> Number:
    return number.numerator if number.denominator == 1 else number


@dataclass(frozen=True, slots=True)
class Linear:
    """``sum(factor * atom) + constant``, in the order of the atoms' numbers, no factor 0.

    Factors and constant are exact rationals (`Number`): whole ones in sums that are computed.
    """

    terms: tuple[tuple[Atom, Any], ...] = ()
    constant: Any = 0
    _bounds: tuple[int, int] | None = field(init=False, compare=False, repr=False, default=None)

    @classmethod
    def of_number(cls, value: Number) -> Linear:
        """Return a constant."""
        return cls((), value)

    @property
    def is_number(self) -> bool:
        """Whether no atom is left."""
        return not self.terms

    @property
    def is_shift(self) -> bool:
        """Whether it is a number that integers of 64 bits with a sign can be shifted by."""
        return self.is_number and 0 <= self.constant < 63

    @property
    def is_whole(self) -> bool:
        """Whether no atom has a fraction for a factor."""
        return all(factor.denominator == 1 for _, factor in self.terms)

    @property
    def single(self) -> Atom | None:
        """The atom, if there is nothing else."""
        if len(self.terms) == 1 and self.constant == 0 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    @property
    def multiple(self) -> int:
        """A number that divides a sum with whole factors; 0 for 0."""
        return math.gcd(self.constant, *(c * a.multiple for a, c in self.terms))

    @property
    def bounds(self) -> tuple[int, int]:
        """Numbers that a sum with whole factors lies between, by the bounds of its atoms."""
        if self._bounds is None:
            low = high = self.constant
            for atom, factor in self.terms:
                low += factor * (atom.low if factor > 0 else atom.high)
                high += factor * (atom.high if factor > 0 else atom.low)
            object.__setattr__(self, "_bounds", (low, high))
        return self._bounds  # type: ignore[return-value]

    @property
    def acts(self) -> bool:
        """Whether evaluating it does something: then it is one atom."""
        return bool(self.terms) and self.terms[0][0].acts

    def __add__(self, other: Linear) -> Linear:
        if not other.terms:
            return self.plus(other.constant) if other.constant else self
        total = dict(self.terms)
        for atom, factor in other.terms:
            total[atom] = _settled(total.get(atom, 0) + factor)
        terms = [term for term in total.items() if term[1]]
        if self.terms and self.terms[-1][0].number > other.terms[0][0].number:
            terms.sort(key=lambda term: term[0].number)
        return Linear(tuple(terms), _settled(self.constant + other.constant))

    def __neg__(self) -> Linear:
        return self.times(-1)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.times(-1)

    def times(self, factor: Number) -> Linear:
        """Return every factor and the constant multiplied."""
        if factor == 1 or not factor:
            return self if factor else Linear()
        terms = tuple((atom, _settled(value * factor)) for atom, value in self.terms)
        return Linear(terms, _settled(self.constant * factor))

    def plus(self, number: Number) -> Linear:
        """Return this plus a number."""
        return Linear(self.terms, _settled(self.constant + number))

    def apart(self, key: object) -> tuple[Number, Linear]:
        """Return the factor of an atom, and the sum without it."""
        for at, (atom, factor) in enumerate(self.terms):
            if atom.key is key:
                return factor, Linear(self.terms[:at] + self.terms[at + 1 :], self.constant)
        return 0, self

    def without(self, *atoms: Atom) -> Linear:
        """Return the sum less the terms of some atoms."""
        return Linear(tuple(t for t in self.terms if t[0] not in atoms), self.constant)

    def contains(self, other: Linear) -> bool:
        """Whether every term of `other` is one of this, and there are some."""
        return bool(other.terms) and set(other.terms) <= set(self.terms)

    def split(self, unit: int) -> tuple[Linear, Linear]:
        """Return ``(whole, rest)`` with ``self == unit * whole + rest``."""
        quotient, remainder = divmod(self.constant, unit)
        whole = tuple((a, c // unit) for a, c in self.terms if c % unit == 0)
        rest = tuple(term for term in self.terms if term[1] % unit)
        return Linear(whole, quotient), Linear(rest, remainder)


def as_atom(atom: Atom) -> Linear:
    """Return ``1 * atom``."""
    return Linear(((atom, 1),))


@analysis
def opaque(expr: Expr) -> Linear:
    """Return ``1 * expr``, whatever `expr` is made of: one atom for all that are written alike."""
    return as_atom(Atom(expr if isinstance(expr, Var) else structure(expr), expr))


@dataclass(frozen=True, slots=True)
class Bound:
    """``low <= variable <= high`` and when it was learnt; None is unbounded."""

    low: Linear | None
    high: Linear | None
    order: int
    # Nothing is known of the variable but comparisons: it is no index, it may be any number.
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
    return as_extent(binary(op, a, b))


def _product(p: int, a: Extent, q: int, b: Extent) -> tuple[int, Extent] | None:
    factor = static_value(b) if q == 0 else static_value(a) if p == 0 else None
    if factor is None:
        return None
    slope, rest = (p, a) if q == 0 else (q, b)
    return slope * factor, as_extent(binary(BinaryOp.MUL, rest, factor))


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

    `together`: both are evaluated at one moment, so that two loads of one element are equal.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if not (_is_small(a) and _is_small(b)):
        return 0 if a is b else as_expr(a) - b
    terms: dict[Atom, Number] = {}
    constant = _collect(a, 1, terms, together) + _collect(b, -1, terms, together)
    left = Linear(tuple(term for term in terms.items() if term[1]), constant)
    if left.is_number:
        return int(left.constant)
    if len(left.terms) == 1:  # one atom times a number: keep the short form
        ((atom, factor),) = left.terms
        if factor == 1:
            return atom.expr + int(left.constant)
    return as_expr(a, None if isinstance(b, int) else b.dtype) - b


def _is_small(expr: Extent) -> bool:
    """Whether an expression has few terms once what it shares is written out."""
    return isinstance(expr, int) or not has_more_nodes(expr, _MOST_TERMS)


def same_extent(a: Extent, b: Extent) -> bool:
    """Whether two extents are equal for all values of their variables, provably."""
    difference = subtract(a, b)
    return isinstance(difference, int) and difference == 0


def _collect(expr: Extent, factor: int, terms: dict[Atom, Number], together: bool) -> int:
    """Add ``factor * expr`` to `terms`, keyed by structure; return the constant part."""

    def part(inner: Expr, by: int) -> int:
        return _collect(inner, by, terms, together)

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
    atom = Atom(structure(expr, together=together), expr)
    terms[atom] = terms.get(atom, 0) + factor
    return 0
