"""Variables of carried values: one name where they are read and summed along the same dimension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, extents_of, index, reduce, remade, walk
from tile_api.arrays.equations.recurrence import Recurrence


def same_variables(of: Recurrence, outputs: Sequence[Output]) -> dict[str, str]:
    """Return names of variables of carried values that outputs read at the same index."""
    first: dict[str, str] = {}
    names: dict[str, str] = {}
    for output in outputs:
        for x in carried_in([output.element]):
            for (name, n), arg in zip(of.carried[x.value[1]], x.args, strict=True):
                if _goes_along(arg, n) and arg in output.indices:
                    names.setdefault(name, first.setdefault(f"{output.name} {arg.value[0]}", name))
    for variables in of.carried:
        found = [names.get(name, name) for name, _ in variables if name]
        if len({*found}) != len(found):
            return {}
    return {name: other for name, other in names.items() if name != other}


def _goes_along(x: Expr, extent: int) -> bool:
    """Tell whether an index is a variable with all values of a dimension."""
    return x.op == "index" and bool(x.value[1] == extent)


def in_terms_of(of: Recurrence, output: Output) -> Output:
    """Name the variables of an output as those of what it reads, where it reads it as it is."""
    names: dict[str, str] = {}
    for x in walk(output.element):
        if x.op == "carry":
            for (name, n), arg in zip(of.carried[x.value[1]], x.args, strict=True):
                if _goes_along(arg, n) and arg in output.indices:
                    names.setdefault(arg.value[0], name)
    used = {*extents_of([output.element, *output.indices])}
    if len({*names.values()}) != len(names) or ({*names.values()} & (used - {*names})):
        return output
    indices = tuple(renamed(i, names) for i in output.indices)
    return replace(output, element=renamed(output.element, names), indices=indices)


def over_carried(of: Recurrence, x: Expr) -> Expr:
    """Let reductions bind the variables of the carried values that they go over."""
    known: dict[Expr, Expr] = {}

    def run(x: Expr) -> Expr:
        if x not in known:
            made = remade(x, tuple(map(run, x.args)))
            known[x] = _bound_as_carried(of, made) if made.op == "reduce" else made
        return known[x]

    return run(x)


def _bound_as_carried(of: Recurrence, node: Expr) -> Expr:
    variable, body = node.value[1], node.args[0]
    for x in carried_in([body]):
        for (name, n), arg in zip(of.carried[x.value[1]], x.args, strict=True):
            is_read = _goes_along(arg, n) and arg.value[0] == variable
            if is_read and name not in body.free and not _is_bound_around(variable, name, body):
                return renamed(node, {variable: name})
    return node


def _is_bound_around(variable: str, name: str, body: Expr) -> bool:
    """Tell whether a reduction within `body` binds `name` and reads `variable`."""
    inner = (x for x in walk(body) if x.op == "reduce" and x.value[1] == name)
    return any(variable in x.free for x in inner)


def renamed(x: Expr, names: Mapping[str, str]) -> Expr:
    """Return `x` with other names of variables, also of those that reductions bind."""
    known: dict[Expr, Expr] = {}

    def run(x: Expr) -> Expr:
        if x not in known:
            known[x] = of(x)
        return known[x]

    def of(x: Expr) -> Expr:
        if x.op == "index":
            name, extent = x.value
            return index(names.get(name, name), extent)
        args = tuple(map(run, x.args))
        if x.op == "reduce":
            kind, variable, extent = x.value
            return reduce(kind, names.get(variable, variable), extent, args[0])
        return remade(x, args)

    return run(x)


def carried_in(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the nodes that read carried values."""
    return (x for x in walk(*roots) if x.op == "carry")
