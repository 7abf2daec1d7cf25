"""Integer index expressions as sums of multiples, and the way back to expressions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from typing import TypeAlias

from tile_core.arith.bounds import Range, limits
from tile_core.dtypes import DType, dtype_of
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Expr
from tile_core.records import dataclass

INT32, INT64 = dtype_of("int32"), dtype_of("int64")

Operands: TypeAlias = "tuple[BinaryOp, Form, Form | int] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """Something that a sum takes as a whole; equal ones are one object.

    Parameters
    ----------
    number
        When it was first met: gives sums a fixed order.
    expr
        Its expression, of type int32 or int64.
    low, high
        Its bounds.
    operands
        What it is made of, where rules look inside.
    acts
        Evaluating it does something: it must not be dropped.
    multiple
        A number that divides its value.
    """

    number: int
    expr: Expr
    low: int
    high: int
    operands: Operands = None
    acts: bool = False
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Form:
    """``sum(factor * atom) + const``, in the order of the atoms' numbers, no factor 0."""

    terms: tuple[tuple[Atom, int], ...] = ()
    const: int = 0
    bounds: Range = field(init=False, compare=False)
    acts: bool = field(init=False, compare=False)
    """Whether evaluating it does something."""

    def __post_init__(self) -> None:
        low = high = self.const
        acts = False
        for atom, factor in self.terms:
            acts = acts or atom.acts
            if factor > 0:
                low += factor * atom.low
                high += factor * atom.high
            else:
                low += factor * atom.high
                high += factor * atom.low
        object.__setattr__(self, "bounds", (low, high))
        object.__setattr__(self, "acts", acts)

    @property
    def single(self) -> Atom | None:
        """The atom, if there is nothing else."""
        if len(self.terms) == 1 and self.const == 0 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    @property
    def multiple(self) -> int:
        """A number that divides the value; 0 for 0."""
        return math.gcd(self.const, *(c * a.multiple for a, c in self.terms))

    def plus(self, other: Form) -> Form:
        """Return the sum."""
        if not other.terms:
            return self if other.const == 0 else Form(self.terms, self.const + other.const)
        return form((*self.terms, *other.terms), self.const + other.const)

    def times(self, factor: int) -> Form:
        """Return the multiple."""
        if factor == 1:
            return self
        if factor == 0:
            return Form()
        return Form(tuple((a, c * factor) for a, c in self.terms), self.const * factor)

    def contains(self, other: Form) -> bool:
        """Whether every term of `other` is one of this, and there are some."""
        return bool(other.terms) and set(other.terms) <= set(self.terms)

    def split(self, unit: int) -> tuple[Form, Form]:
        """Return ``(whole, rest)`` with ``self == unit * whole + rest``."""
        quotient, remainder = divmod(self.const, unit)
        whole: list[tuple[Atom, int]] = []
        rest: list[tuple[Atom, int]] = []
        for atom, factor in self.terms:
            if factor % unit == 0:
                whole.append((atom, factor // unit))
            else:
                rest.append((atom, factor))
        return Form(tuple(whole), quotient), Form(tuple(rest), remainder)


def form(terms: Iterable[tuple[Atom, int]], const: int = 0) -> Form:
    """Return the sum of `terms`, equal atoms put together."""
    total: dict[Atom, int] = {}
    for atom, factor in terms:
        total[atom] = total.get(atom, 0) + factor
    kept = [(atom, factor) for atom, factor in total.items() if factor]
    if len(kept) > 1:
        kept.sort(key=_by_number)
    return Form(tuple(kept), const)


def _by_number(term: tuple[Atom, int]) -> int:
    return term[0].number


class MayOverflow(Exception):
    """A sum has no order in which every part certainly fits its type."""


def fits(value: Form, dtype: DType) -> bool:
    """Whether the value is certainly in the range of `dtype`."""
    least, most = limits(dtype)
    low, high = value.bounds
    return least <= low and high <= most


def within(bounds: Range, dtype: DType) -> bool:
    """Whether `dtype` holds all values between `bounds`."""
    low, high = limits(dtype)
    return low <= bounds[0] and bounds[1] <= high


def is_safe(value: Form, dtype: DType) -> bool:
    """Whether the sum can be computed in `dtype`, given that its value fits.

    Parts that are all at least 0 are at most the whole. Otherwise the bounds of each partial
    sum must fit.
    """
    terms = value.terms
    least, most = limits(dtype)
    natural = value.const >= 0
    for atom, factor in terms:
        natural = natural and factor > 0 and atom.low >= 0
        if abs(factor) > most:
            return False
    if abs(value.const) > most:
        return value.const == least and not terms
    if natural:
        return True
    low = high = 0
    for atom, factor in sorted(terms, key=_printed_order):
        ends = (factor * atom.low, factor * atom.high)
        low, high = low + min(ends), high + max(ends)
        if min(ends) < least or max(ends) > most or low < least or high > most:
            return len(terms) == 1 and factor == 1 and value.const == 0
    return least <= low + value.const and high + value.const <= most


def _printed_order(term: tuple[Atom, int]) -> tuple[bool, int, int]:
    """Sort what is added before what is subtracted, and large steps first."""
    atom, factor = term
    is_product = atom.operands is not None and atom.operands[0] is BinaryOp.MUL
    return factor < 0, -abs(factor) if not is_product else -(2**63), atom.number


def write(value: Form, dtype: DType) -> Expr:
    """Return the expression of a sum, in the arithmetic of `dtype`: int32 or int64.

    Sums of 64 bits are computed in 32 as far as that certainly suffices.

    Raises
    ------
    MayOverflow
        If a part of the sum might not fit, though its value does.
    """
    if not is_safe(value, dtype):
        raise MayOverflow
    if dtype == INT64 and value.terms and is_narrow(value):
        return Cast(INT64, write(value, INT32))
    total: Expr | None = None
    for atom, factor in sorted(value.terms, key=_printed_order):
        term = _term(atom, abs(factor), dtype)
        if total is None:
            total = term if factor > 0 else _negative(atom, factor, value.const, term, dtype)
        else:
            total = Binary(BinaryOp.ADD if factor > 0 else BinaryOp.SUB, total, term, dtype)
    if total is None:
        return Const(value.const, dtype)
    if value.const == 0 or _starts_with_const(value):
        return total
    op = BinaryOp.ADD if value.const > 0 else BinaryOp.SUB
    return Binary(op, total, Const(abs(value.const), dtype), dtype)


def is_narrow(value: Form) -> bool:
    """Whether a sum is certainly computed right in 32 bits."""
    if not fits(value, INT32):
        return False
    for atom, _ in value.terms:
        if atom.expr.dtype != INT32:
            return False
    return is_safe(value, INT32)


def _starts_with_const(value: Form) -> bool:
    return all(factor < 0 for _, factor in value.terms)


def _negative(atom: Atom, factor: int, const: int, term: Expr, dtype: DType) -> Expr:
    """Return ``const - term``, where nothing positive can stand in front."""
    if const == 0:
        return _scaled(atom, factor, dtype)
    return Binary(BinaryOp.SUB, Const(const, dtype), term, dtype)


def _term(atom: Atom, factor: int, dtype: DType) -> Expr:
    narrow = atom.expr.dtype == INT32
    if dtype == INT64 and narrow and fits(Form(((atom, factor),)), INT32):
        return Cast(INT64, _scaled(atom, factor, INT32))
    return _scaled(atom, factor, dtype)


def _scaled(atom: Atom, factor: int, dtype: DType) -> Expr:
    value = atom.expr
    if value.dtype != dtype:
        if dtype == INT32 and not fits(Form(((atom, 1),)), INT32):
            raise MayOverflow
        value = Cast(dtype, value)
    return value if factor == 1 else Binary(BinaryOp.MUL, value, Const(factor, dtype), dtype)
