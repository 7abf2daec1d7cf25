"""Extrema that start from a finite number, since differences from them are computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.evaluate import number_of
from tile_api.arrays.equations.expressions import Expr, const, make, multiply, walk, where
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


def infinite_of(s: State) -> float:
    """Return what an extremum of floats is of no elements, or of such infinities only."""
    return -math.inf if s.kind == "max" else math.inf


def with_infinities(
    s: State, states: Sequence[State], results: Iterable[Expr], values: Mapping[Expr, Expr]
) -> dict[Expr, Expr]:
    """Return sums of exponentials as they are where the extremum `s` has met infinities only.

    It has been finite meanwhile, and the sums are 0 instead of no numbers. Only those that some of
    the `results` tell from it are corrected.

    Parameters
    ----------
    values
        What stands for accumulators.
    """
    sums = [x for x in states if x.rule == "scaling" and s.mine in x.depends]
    told = [result for result in results if _tells(result, s, sums)]
    read = set(walk(*told))
    infinite, mine = const(infinite_of(s), s.mine.dtype), values[s.mine]
    begun = make("eq", mine, const(identity_of(s.kind, s.mine.dtype), s.mine.dtype))
    found: dict[Expr, Expr] = {}
    for x in (x for x in sums if x.mine in read):
        assert x.correct is not None
        old = {d: values[d] for d in x.depends}
        scale = x.correct(old, {**old, s.mine: infinite}).scale
        assert scale is not None
        value = values[x.mine]
        found[x.mine] = where(begun, multiply(value, scale), value)
    return found


def _tells(result: Expr, s: State, sums: Iterable[State]) -> bool:
    """Tell whether a result is another one if sums are no numbers, and not 0, as `s` is infinite.

    As the logarithm of a sum is, and a quotient of two sums is not.
    """
    known = {s.mine: infinite_of(s), s.body: infinite_of(s)}
    mine = [x.mine for x in sums]
    for side in (1, 2):
        zero, none = (
            number_of(result, known | dict.fromkeys(mine, v), side) for v in (0.0, math.nan)
        )
        if zero != none and not (math.isnan(zero) and math.isnan(none)):
            return True
    return False
