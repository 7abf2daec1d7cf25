"""Index variables replaced in expressions, beside those of the same name that are bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tile_api.arrays.equations.expressions import Expr, index, rebuild, reduce


def substituted(x: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return `x` with values for index variables; what reductions bind is not among them."""
    values = {name: value for name, value in values.items() if name in x.free}
    if not values:
        return x
    known: dict[Expr, Expr] = {}
    for n in _outside(x):
        if n.op == "index" and n.value[0] in values:
            known[n] = values[n.value[0]]
        elif n.op == "reduce":
            known[n] = _within(n, values)
    return rebuild(x, known)


def _within(x: Expr, values: Mapping[str, Expr]) -> Expr:
    kind, variable, extent = x.value
    body = x.args[0]
    mine = {name: value for name, value in values.items() if name in x.free}
    met = frozenset().union(*(value.free for value in mine.values()), x.free - set(mine))
    fresh = unused(variable, met)
    if fresh != variable:
        mine[variable] = index(fresh, extent)
    return bound(kind, fresh, extent, substituted(body, mine))


def _outside(x: Expr) -> Iterable[Expr]:
    """Yield the expressions of which `x` is made, without what stands in reductions."""
    todo, seen = [x], {x}
    while todo:
        at = todo.pop()
        yield at
        if at.op != "reduce":
            new = [arg for arg in dict.fromkeys(at.args) if arg not in seen]
            seen.update(new)
            todo += new


def unused(name: str, taken: Iterable[str]) -> str:
    """Return the first name of a dimension that is not taken; `name` is any of them."""
    met = set(taken)
    name = name.rstrip("'")
    while name in met:
        name += "'"
    return name


def bound(kind: str, variable: str, extent: int, body: Expr) -> Expr:
    """Return a reduction; it binds the first variable of its dimension that is free."""
    name = unused(variable, body.free - {variable})
    if name != variable:
        body = substituted(body, {variable: index(name, extent)})
    return reduce(kind, name, extent, body)
