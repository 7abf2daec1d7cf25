"""The rule `shift`: polynomials in a state are expanded about its old value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import factorial

from tile_api.arrays.equations.expressions import Expr, add, const, multiply, rebuild, subtract
from tile_api.arrays.reductions.algebra import (
    Polynomial,
    derivative,
    expression,
    monomial,
    plus,
    polynomial,
)
from tile_api.arrays.reductions.state import COUNT, Correction, State, states_in

MOST = 4
"""The highest order that is expanded."""


def shift(state: State, stream: str, known: Sequence[State]) -> State | None:
    """Return the state of a sum of polynomials in one other state.

    ``Σ e(x, d') = Σ_k (d' - d)^k / k! Σ ∂^k e(x, d)``. The sums of derivatives must be known:
    of constants they are counts, and of the elements themselves, if `d` is their mean, ``d``
    times the count, and what is left since `d` is rounded. With the mean in a sum of squares this
    is Welford's update.
    """
    if state.kind != "sum" or len(state.depends) != 1 or not state.body.dtype.is_float:
        return None
    (d,) = state.depends
    of = next(k for k in known if k.mine is d)
    whole = polynomial(state.body)
    if any(atom is not d and states_in([atom]) for atoms in whole for atom in atoms):
        return None
    moments: list[Polynomial] = []
    rest = derivative(whole, d)
    while rest:
        summed = _summed(rest, stream, d, of)
        if summed is None or len(moments) == MOST:
            return None
        moments.append(summed)
        rest = derivative(rest, d)
    dtype = state.body.dtype

    def correct(old: Mapping[Expr, Expr], new: Mapping[Expr, Expr]) -> Correction:
        delta, made, power = subtract(new[d], old[d]), state.mine, const(1, dtype)
        for order, moment in enumerate(moments, 1):
            power = multiply(power, delta)
            if moment:
                at = rebuild(expression(moment, dtype), dict(old))
                made = add(made, multiply(const(1 / factorial(order), dtype), multiply(power, at)))
        return Correction(value=made)

    return replace(state, correct=correct, rule=f"shift of order {len(moments)}")


def _summed(p: Polynomial, stream: str, d: Expr, of: State) -> Polynomial | None:
    """Return the sum of a polynomial over what was met, or None if it is not known."""
    made: Polynomial = {}
    for atoms, c in p.items():
        inner = tuple(atom for atom in atoms if stream in atom.free)
        rest = [atom for atom in atoms if stream not in atom.free]
        if not inner:
            sums = [[COUNT]]
        elif of.left is not None and polynomial(of.body) == {inner: 1.0}:
            sums = [[COUNT, d], [of.left]]
        else:
            return None
        for more in sums:
            made = plus(made, {monomial([*rest, *more]): c})
    return made
