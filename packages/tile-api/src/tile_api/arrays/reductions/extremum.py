"""The rule `extremum`: what is read where a running extremum was met."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.expressions import Expr, bound_of, make, where
from tile_api.arrays.equations.sizes import at_most
from tile_api.arrays.reductions.state import Correction, State, states_in


def extremum(state: State, stream: str, known: Sequence[State]) -> State | None:
    """Return the state of a fold of ``where(x == d, y, identity)``, `d` the extremum of `x`.

    When `d` changes, nothing that was met before equals it: the accumulator is forgotten.
    """
    body = state.body
    if body.op != "where" or body.args[0].op != "eq" or body.args[2].op != "const":
        return None
    condition, kept, lost = body.args
    if not _is_lost(state, lost) or states_in([kept]):
        return None
    sides = condition.args
    for x, d in (sides, sides[::-1]):
        of = next((k for k in known if k.mine is d), None)
        if of is not None and of.kind in ("max", "min") and of.body is x:

            def correct(
                old: Mapping[Expr, Expr], new: Mapping[Expr, Expr], d: Expr = d
            ) -> Correction:
                return Correction(value=where(make("eq", new[d], old[d]), state.mine, lost))

            return replace(state, depends=(d,), correct=correct, rule="extremum")
    return None


_INFINITE = {"max": -math.inf, "min": math.inf}


def _is_lost(state: State, value: Expr) -> bool:
    """Tell whether a constant changes nothing in the fold: its identity, or beyond every index."""
    if value.value == state.identity or value.value == _INFINITE.get(state.kind):
        return True
    bound = bound_of(state.body.args[1])
    return state.kind == "min" and bound is not None and at_most(bound, value.value)
