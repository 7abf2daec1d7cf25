"""The rule `hoist`: what depends on states comes out of the fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tile_api.arrays.equations.expressions import Expr, const
from tile_api.arrays.reductions.algebra import factors, product, terms, total
from tile_api.arrays.reductions.state import State, states_in


@dataclass(frozen=True)
class Factors:
    """The factors of a sum.

    Parameters
    ----------
    inside
        Those without states.
    exponentials
        Of states: they stay inside, where they keep other exponentials small.
    outside
        Of states: they multiply the result.
    """

    inside: tuple[Expr, ...]
    exponentials: tuple[Expr, ...]
    outside: tuple[Expr, ...]


def factors_of(state: State, stream: str) -> Factors | None:
    """Return the factors of a sum, or None if elements and states stand in one of them."""
    inside, exponentials, outside = list[Expr](), list[Expr](), list[Expr]()
    for factor in factors(state.body):
        if not states_in([factor]):
            inside.append(factor)
        elif stream in factor.free:
            return None
        elif factor.op == "exp":
            exponentials.append(factor)
        elif state.body.dtype.is_float:
            outside.append(factor)
        else:
            return None
    return Factors(tuple(inside), tuple(exponentials), tuple(outside))


def hoist(state: State, stream: str, known: Sequence[State]) -> State | None:
    """Return the state by ``Σ g(x) h(d) = h(d) Σ g(x)``, or ``max(x + h(d)) = max(x) + h(d)``."""
    if state.kind in ("max", "min") and state.body.dtype.is_float:
        return _extremum(state, stream)
    found = factors_of(state, stream) if state.kind in ("sum", "mean") else None
    if found is None or found.exponentials:
        return None
    one = const(1, state.body.dtype)
    value = product([*found.outside, state.mine], one)
    return replace(state, body=product(found.inside, one), value=value, depends=(), rule="hoist")


def _extremum(state: State, stream: str) -> State | None:
    zero = const(0, state.body.dtype)
    inside, outside = list[Expr](), list[Expr]()
    for term in terms(state.body):
        if not states_in([term]):
            inside.append(term)
        elif stream in term.free:
            return None
        else:
            outside.append(term)
    body = total(inside, zero)
    if body.op == "const":
        return None
    value = total([*outside, state.mine], zero)
    return replace(state, body=body, value=value, depends=(), rule="hoist")
