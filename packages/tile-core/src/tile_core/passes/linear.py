"""Integer expressions as exact sums of multiples: the normal form of range analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tile_core.ir.expr import Expr


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

    constant: Fraction = Fraction(0)
    terms: Mapping[object, Fraction] = field(default_factory=dict)
    atoms: Mapping[object, Expr] = field(default_factory=dict)

    @classmethod
    def of_atom(cls, key: object, atom: Expr) -> Linear:
        """Return ``1 * atom``."""
        return cls(Fraction(0), {key: Fraction(1)}, {key: atom})

    @classmethod
    def of_number(cls, value: int | Fraction) -> Linear:
        """Return a constant."""
        return cls(Fraction(value))

    @property
    def is_number(self) -> bool:
        """Whether no atom is left."""
        return not self.terms

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for key, factor in other.terms.items():
            total = terms.get(key, Fraction(0)) + factor
            if total:
                terms[key] = total
            else:
                terms.pop(key, None)
        return Linear(self.constant + other.constant, terms, {**self.atoms, **other.atoms})

    def __neg__(self) -> Linear:
        return self.times(Fraction(-1))

    def __sub__(self, other: Linear) -> Linear:
        return self + -other

    def times(self, factor: Fraction | int) -> Linear:
        """Return every factor and the constant multiplied."""
        if not factor:
            return Linear()
        terms = {key: value * factor for key, value in self.terms.items()}
        return Linear(self.constant * factor, terms, self.atoms)

    def plus(self, number: int | Fraction) -> Linear:
        """Return this plus a number."""
        return Linear(self.constant + number, self.terms, self.atoms)

    def replaced(self, key: object, by: Linear) -> Linear:
        """Return this with the atom `key` replaced."""
        rest = dict(self.terms)
        factor = rest.pop(key)
        return Linear(self.constant, rest, self.atoms) + by.times(factor)

    def parts(self) -> Iterator[tuple[object, Fraction, Expr]]:
        """Yield key, factor and expression of each term."""
        for key, factor in self.terms.items():
            yield key, factor, self.atoms[key]
