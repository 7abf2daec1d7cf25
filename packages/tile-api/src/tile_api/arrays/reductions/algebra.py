"""Sums as terms, products as factors, polynomials: forms of one expression, for analysis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TypeAlias

from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    make,
    multiply,
    negate,
    reciprocal,
    walk,
)
from tile_api.arrays.equations.sizes import Size

Polynomial: TypeAlias = dict[tuple[Expr, ...], float]
"""Coefficients by monomial: atoms in the order of their creation."""


MOST_PARTS = 512
"""A sum or a product of more is taken as one: what is read twice is met by powers of two."""


def is_zero(x: Expr) -> bool:
    """Tell whether an expression is the number 0."""
    return x.op == "const" and x.value == 0


def terms(x: Expr) -> list[Expr]:
    """Return what `x` is a sum of."""
    return _terms(x, MOST_PARTS) or [x]


def _terms(x: Expr, most: int) -> list[Expr]:
    """Return terms, none if there are too many."""
    if x.op == "add":
        first = _terms(x.args[0], most - 1)
        second = _terms(x.args[1], most - len(first)) if first else []
        return first + second if second else []
    if x.op == "multiply" and x.args[0].op == "const" and x.args[1].op == "add":
        return [multiply(x.args[0], term) for term in _terms(x.args[1], most)]
    return [x] if most > 0 else []


def total(parts: Iterable[Expr], zero: Expr) -> Expr:
    """Return the sum of `parts`, `zero` if there are none: of -0.0 and 0.0 the sum is 0.0."""
    several = [*parts]
    return reduce(add, several) if several else zero


def factors(x: Expr) -> list[Expr]:
    """Return what `x` is a product of: an exponential of a sum is a product of exponentials."""
    return _factors(x, MOST_PARTS) or [x]


def _factors(x: Expr, most: int) -> list[Expr]:
    """Return factors, none if there are too many."""
    if x.op == "multiply":
        first = _factors(x.args[0], most - 1)
        second = _factors(x.args[1], most - len(first)) if first else []
        return first + second if second else []
    if x.op == "exp":
        return [make("exp", term) for term in terms(x.args[0])] if most > 0 else []
    if x.op == "reciprocal":
        return [
            make("exp", negate(f.args[0])) if f.op == "exp" else reciprocal(f)
            for f in _factors(x.args[0], most)
        ]
    return [x] if most > 0 else []


def product(parts: Iterable[Expr], one: Expr) -> Expr:
    """Return the product of factors, exponentials joined: one alone might overflow.

    Factors are multiplied in the order of their creation: equal products are one expression.
    """
    ordered = sorted(parts, key=lambda part: part.serial)
    made = one
    for part in ordered:
        if part.op != "exp":
            made = multiply(made, part)
    powers = [part.args[0] for part in ordered if part.op == "exp"]
    return multiply(made, make("exp", reduce(add, powers))) if powers else made


MOST_MONOMIALS = 1024
"""A product with more is taken as it is: no rule gains by writing it out."""


def polynomial(x: Expr) -> Polynomial:
    """Return `x` as a polynomial in what is no sum and no product."""
    made: dict[Expr, Polynomial] = {}
    for n in walk(x):
        made[n] = _polynomial(n, made)
    return made[x]


def _polynomial(x: Expr, known: Mapping[Expr, Polynomial]) -> Polynomial:
    if x.op == "const" and not isinstance(x.value, Size):
        return {(): float(x.value)} if x.value else {}
    if x.op == "add":
        return plus(known[x.args[0]], known[x.args[1]])
    if x.op == "multiply":
        made: Polynomial = {}
        left, right = known[x.args[0]], known[x.args[1]]
        if len(left) * len(right) > MOST_MONOMIALS:
            return {(x,): 1.0}
        for one, c in left.items():
            for other, d in right.items():
                made = plus(made, {monomial((*one, *other)): c * d})
        return made
    return {(x,): 1.0}


def monomial(atoms: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return atoms in their order."""
    return tuple(sorted(atoms, key=lambda atom: atom.serial))


def plus(p: Polynomial, q: Polynomial) -> Polynomial:
    """Return the sum of polynomials."""
    made = dict(p)
    for atoms, c in q.items():
        made[atoms] = made.get(atoms, 0.0) + c
        if made[atoms] == 0:
            del made[atoms]
    return made


def derivative(p: Polynomial, by: Expr) -> Polynomial:
    """Return the derivative of a polynomial."""
    made: Polynomial = {}
    for atoms, c in p.items():
        if count := Counter(atoms)[by]:
            rest = list(atoms)
            rest.remove(by)
            made = plus(made, {tuple(rest): c * count})
    return made


def expression(p: Polynomial, dtype: str) -> Expr:
    """Return a polynomial as an expression."""
    parts = (reduce(multiply, atoms, const(c, dtype)) for atoms, c in p.items())
    return total(parts, const(0, dtype))
