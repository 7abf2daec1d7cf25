"""The rule `scaling`: a sum of exponentials is rescaled when what they are taken from changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.expressions import Expr, const, make, rebuild, subtract
from tile_api.arrays.reductions.algebra import product, total
from tile_api.arrays.reductions.hoist import factors_of
from tile_api.arrays.reductions.state import Correction, State, states_in


def scaling(state: State, stream: str, known: Sequence[State]) -> State | None:
    """Return the state of ``Σ g(x) exp(h(d))``, which is multiplied by ``exp(h(d') - h(d))``."""
    found = factors_of(state, stream) if state.kind in ("sum", "mean") else None
    if found is None or not found.exponentials:
        return None
    dtype = state.body.dtype
    one = const(1, dtype)
    power = total([f.args[0] for f in found.exponentials], const(0, dtype))

    def correct(old: Mapping[Expr, Expr], new: Mapping[Expr, Expr]) -> Correction:
        change = subtract(rebuild(power, dict(new)), rebuild(power, dict(old)))
        return Correction(scale=make("exp", change))

    return replace(
        state,
        body=product([*found.inside, *found.exponentials], one),
        value=product([*found.outside, state.mine], one),
        depends=states_in([power]),
        correct=correct,
        rule="scaling",
    )
