"""Integer expressions as exact sums of multiples: the normal form of range analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias

from tile_core.arith.interval import Ends
from tile_core.ir.expr import Expr
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


def whole_between(low: Number | None, high: Number | None) -> Ends:
    """Return the bounds of whole numbers between two numbers."""
    return None if low is None else math.ceil(low), None if high is None else math.floor(high)
