"""Sums as terms, products as factors, polynomials: forms of one expression, for analysis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    make,
    multiply,
    negate,
    reciprocal,
)

Polynomial: TypeAlias = dict[tuple[Expr, ...], float]
"""Coefficients by monomial: atoms in the order of their creation."""


def terms(x: Expr) -> list[Expr]:
    """Return what `x` is a sum of."""
    if x.op == "add":
        return terms(x.args[0]) + terms(x.args[1])
    if x.op == "multiply" and x.args[0].op == "const" and x.args[1].op == "add":
        return [multiply(x.args[0], term) for term in terms(x.args[1])]
    return [x]


def total(parts: Iterable[Expr], zero: Expr) -> Expr:
    """Return the sum of `parts`."""
    made = zero
    for part in parts:
        made = add(made, part)
    return made


def factors(x: Expr) -> list[Expr]:
    """Return what `x` is a product of: an exponential of a sum is a product of exponentials."""
    if x.op == "multiply":
        return factors(x.args[0]) + factors(x.args[1])
    if x.op == "exp":
        return [make("exp", term) for term in terms(x.args[0])]
    if x.op == "reciprocal":
        return [
            make("exp", negate(f.args[0])) if f.op == "exp" else reciprocal(f)
            for f in factors(x.args[0])
        ]
    return [x]


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
    return multiply(made, make("exp", total(powers[1:], powers[0]))) if powers else made


MOST_MONOMIALS = 1024
"""A product with more is taken as it is: no rule gains by writing it out."""


def polynomial(x: Expr) -> Polynomial:
    """Return `x` as a polynomial in what is no sum and no product."""
    if x.op == "const":
        return {(): float(x.value)} if x.value else {}
    if x.op == "add":
        return plus(polynomial(x.args[0]), polynomial(x.args[1]))
    if x.op == "multiply":
        made: Polynomial = {}
        left, right = polynomial(x.args[0]), polynomial(x.args[1])
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
    made: Expr = const(0, dtype)
    for atoms, c in p.items():
        term: Expr = const(c, dtype)
        for atom in atoms:
            term = multiply(term, atom)
        made = add(made, term)
    return made
