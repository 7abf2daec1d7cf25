"""The rules `hoist` and `scaling`: what depends on states comes out of the fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations import Expr, add, const, make, rebuild, subtract
from tile_api.arrays.reductions.algebra import factors, product, terms, total
from tile_api.arrays.reductions.state import Correction, State, states_in


def factored(state: State, stream: str, known: Sequence[State]) -> State | None:
    """Return the state by ``Σ g(x) h(d) = h(d) Σ g(x)``, or ``max(x + h(d)) = max(x) + h(d)``.

    A factor ``exp(h(d))`` stays inside, where it keeps the exponential small: then the sum is
    rescaled by ``exp(h(d') - h(d))``.
    """
    if state.kind in ("sum", "mean"):
        return _sum(state, stream)
    if state.kind in ("max", "min") and state.body.dtype.is_float:
        return _extremum(state, stream)
    return None


def _sum(state: State, stream: str) -> State | None:
    dtype = state.body.dtype
    one = const(1, dtype)
    inside: list[Expr] = []
    online: list[Expr] = []
    outside: list[Expr] = []
    for factor in factors(state.body):
        if not states_in([factor]):
            inside.append(factor)
        elif stream in factor.free:
            return None
        elif factor.op == "exp":
            online.append(factor)
        elif dtype.is_float:
            outside.append(factor)
        else:
            return None
    value = product([*outside, state.mine], one)
    if not online:
        return replace(state, body=product(inside, one), value=value, depends=(), rule="hoist")
    power = total([f.args[0] for f in online], const(0, dtype))

    def correct(old: Mapping[Expr, Expr], new: Mapping[Expr, Expr]) -> Correction:
        change = subtract(rebuild(power, dict(new)), rebuild(power, dict(old)))
        return Correction(scale=make("exp", change))

    return replace(
        state,
        body=product([*inside, *online], one),
        value=value,
        depends=states_in([power]),
        correct=correct,
        rule="scaling",
    )


def _extremum(state: State, stream: str) -> State | None:
    zero = const(0, state.body.dtype)
    inside: Expr = zero
    outside: Expr = zero
    for term in terms(state.body):
        if not states_in([term]):
            inside = add(inside, term)
        elif stream in term.free:
            return None
        else:
            outside = add(outside, term)
    if inside.op == "const":
        return None
    value = add(outside, state.mine)
    return replace(state, body=inside, value=value, depends=(), rule="hoist")
