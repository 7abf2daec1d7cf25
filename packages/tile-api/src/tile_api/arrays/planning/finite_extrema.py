"""Extrema that start from a finite number, since differences from them are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_api.arrays.equations.expressions import Expr, const, make, walk
from tile_api.arrays.planning.plan import Plan
from tile_api.arrays.reductions.state import State, identity_of


def is_finite_extremum(s: State, states: Sequence[State]) -> bool:
    """Tell whether another state is computed with differences from running values of `s`."""
    same = (x for x in states if x is not s and x.sweep == s.sweep)
    return any(s.mine in set(walk(x.body)) for x in same if x.rule != "extremum")


def with_infinities_met(plan: Plan) -> Plan:
    """Let infinities equal an extremum that has met nothing else: it is finite meanwhile."""
    if plan.is_resident:
        return plan
    carried = [replace(c, state=_met(c.state, plan.states)) for c in plan.carried]
    return replace(plan, carried=tuple(carried))


def _met(s: State, states: Sequence[State]) -> State:
    if s.rule != "extremum":
        return s
    (d,) = s.depends
    of = next(x for x in states if x.mine is d)
    if not d.dtype.is_float or not is_finite_extremum(of, states):
        return s
    condition, kept, lost = s.body.args
    start = const(identity_of(of.kind, d.dtype), d.dtype)
    nearest = "maximum" if of.kind == "max" else "minimum"
    sides: list[Expr] = [x if x is d else make(nearest, x, start) for x in condition.args]
    return replace(s, body=make("where", make("eq", *sides), kept, lost))
