"""One reduction after the other becomes a state: rules are tried in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tile_api.arrays.equations.expressions import (
    Expr,
    is_positive_multiple,
    make,
    multiply,
    rebuild,
)
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.reductions.extremum import extremum
from tile_api.arrays.reductions.hoist import hoist
from tile_api.arrays.reductions.scaling import scaling
from tile_api.arrays.reductions.shift import shift
from tile_api.arrays.reductions.state import State, states_in

_RULES = (hoist, scaling, extremum, shift)
_EXACT_RULES = (extremum,)


def derived(reductions: Iterable[Expr], stream: str, taken: Iterable[str] = ()) -> list[State]:
    """Return reductions over one variable as states, each after those that it reads."""
    known: list[State] = []
    names = set(taken)
    for node in reductions:
        name = _fresh(_NAMES[node.value[0]], names)
        known.append(_derived(node, stream, known, name))
    return known


_NAMES = {"sum": "total", "prod": "product", "max": "highest", "min": "lowest", "mean": "mean"}


def _fresh(base: str, names: set[str]) -> str:
    name, count = base, 1
    while name in names:
        count += 1
        name = f"{base}_{count}"
    names.add(name)
    return name


def _derived(node: Expr, stream: str, known: Sequence[State], name: str) -> State:
    body = rebuild(node.args[0], {s.node: s.value for s in known})
    mine = make("state", value=(name, tuple(sorted(node.free))), dtype=body.dtype)
    depends = states_in([body])
    left = None
    if node.value[0] == "mean":
        left = make("state", value=(f"{name}_left", mine.value[1]), dtype=body.dtype)
    state = State(node, name, body, mine, mine, depends=depends, left=left)
    if not depends:
        return _without_scale(state)
    late = max(s.sweep for s in known if s.mine in depends)
    for rule in _EXACT_RULES if is_strict() else _RULES:
        found = rule(state, stream, known)
        if found is not None:
            return _without_scale(replace(found, sweep=late))
    return replace(state, depends=(), rule="another sweep", sweep=late + 1)


def _without_scale(state: State) -> State:
    """Take a positive constant out of an extremum: max(c x) = c max(x) saves a pass of the tile."""
    body = state.body
    if state.kind not in ("max", "min") or not is_positive_multiple(body):
        return state
    scale, rest = body.args
    value = rebuild(state.value, {state.mine: multiply(scale, state.mine)})
    return replace(state, body=rest, value=value)
