"""Index variables replaced in expressions, beside those of the same name that are bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from tile_api.arrays.equations.dims import another
from tile_api.arrays.equations.expressions import Expr, index, make, rebuild, reduce, walk
from tile_api.arrays.equations.recurrence import Read, Recurrence

_Done: TypeAlias = dict[tuple[Expr, frozenset[tuple[str, Expr]]], Expr]


def substituted(x: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return `x` with values for its free index variables.

    What reductions and recurrences bind stays bound, and no variable of a value becomes so: where
    one would, the bound variable gets another name.
    """
    return _substituted(x, values, {})


def _substituted(x: Expr, values: Mapping[str, Expr], done: _Done) -> Expr:
    values = {name: value for name, value in values.items() if name in x.free}
    if not values:
        return x
    # A reduction stands in others many times: without `done` by as many ways as lead to it.
    key = x, frozenset(values.items())
    if key not in done:
        known: dict[Expr, Expr] = {}
        for n in _outside(x):
            if n.op == "index" and n.value[0] in values:
                known[n] = values[n.value[0]]
            elif n.op == "reduce":
                known[n] = _in_reduction(n, values, done)
            elif n.op == "scan":
                known[n] = _in_recurrence(n, values, done)
        done[key] = rebuild(x, known)
    return done[key]


def _in_reduction(x: Expr, values: Mapping[str, Expr], done: _Done) -> Expr:
    kind, variable, extent = x.value
    mine = {name: value for name, value in values.items() if name in x.free}
    met = _free(mine.values())
    if variable in met:
        fresh = another(variable, met | x.args[0].free)
        mine[variable] = index(fresh, extent)
        variable = fresh
    return reduce(kind, variable, extent, _substituted(x.args[0], mine, done))


def _in_recurrence(x: Expr, values: Mapping[str, Expr], done: _Done) -> Expr:
    read: Read = x.value
    at, inner = x.args[: read.rank], x.args[read.rank :]
    free = _free(inner)
    mine = {n: value for n, value in values.items() if n in free - read.of.bound}
    met = _free(mine.values())
    if met & read.of.bound:
        renamed, names = _renamed(read.of, met | free)
        read = replace(read, of=renamed)
        mine |= names
    args = [_substituted(arg, values, done) for arg in at]
    args += [_substituted(arg, mine, done) for arg in inner]
    return make("scan", *args, value=read, dtype=x.dtype)


def _renamed(of: Recurrence, taken: frozenset[str]) -> tuple[Recurrence, dict[str, Expr]]:
    """Return a recurrence that binds none of the names `taken`, and its variables by name."""
    extents = {of.variable: of.extent} | {name: n for v in of.carried for name, n in v if name}
    names: dict[str, str] = {}
    for name in sorted(extents.keys() & taken):
        names[name] = another(name, taken | extents.keys() | {*names.values()})
    carried = tuple(tuple((names.get(name, name), n) for name, n in v) for v in of.carried)
    made = replace(of, variable=names.get(of.variable, of.variable), carried=carried)
    return made, {name: index(other, extents[name]) for name, other in names.items()}


def _free(roots: Iterable[Expr]) -> frozenset[str]:
    return frozenset().union(*(x.free for x in roots))


def _outside(x: Expr) -> Iterable[Expr]:
    """Yield the expressions of which `x` is made, without what stands where variables are bound."""
    todo, seen = [x], {x}
    while todo:
        at = todo.pop()
        yield at
        if at.op not in ("reduce", "scan"):
            new = [arg for arg in dict.fromkeys(at.args) if arg not in seen]
            seen.update(new)
            todo += new


def unused(name: str, taken: Iterable[str]) -> str:
    """Return the first name of a dimension that is not taken; `name` is any of them."""
    return another(name.rstrip("'"), set(taken))


def bound(kind: str, variable: str, extent: int, body: Expr) -> Expr:
    """Return a reduction; it binds the first variable of its dimension that is free."""
    name = unused(variable, body.free - {variable})
    if name != variable:
        body = substituted(body, {variable: index(name, extent)})
    return reduce(kind, name, extent, body)


def bound_first(x: Expr, name_of: Callable[[str, int], str] = lambda name, _: name) -> Expr:
    """Return `x` in which reductions bind the first variable of their dimension that is free.

    Parameters
    ----------
    name_of
        Returns the name of a dimension, given that of a variable of it and its extent.
    """
    known: dict[Expr, Expr] = {}
    for n in walk(x):
        made = rebuild(n, {arg: known[arg] for arg in n.args})
        if n.op == "reduce":
            kind, variable, extent = n.value
            name, body = name_of(variable, extent), made.args[0]
            if name != variable:
                name = unused(name, body.free)
                body = substituted(body, {variable: index(name, extent)})
            made = bound(kind, name, extent, body)
        known[n] = made
    return known[x]


def renamed_alike(x: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """Return `x` in terms of variables by their order, and the variables that these stand for.

    What differs in nothing but the names of variables is one expression then.

    Before   Σ_k a[i', k] * b[k, j]
    After    Σ_h a[#0, h] * b[h, #1], with (i', j), where h is named by its extent
    """
    free = [n for n in walk(x) if n.op == "index" and n.value[0] in x.free]
    names = {n.value[0]: index(f"#{k}", n.value[1]) for k, n in enumerate(free)}
    return bound_first(substituted(x, names), lambda _, extent: f"#of {extent}"), tuple(free)
