"""Equations as lines of text, in which what is read twice has a name; and their digest."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tile_api.arrays.equations.equations import Equations, Output
from tile_api.arrays.equations.expressions import Expr, formula, index, load, rebuild, walk

_SMALL = 4
"""Expressions within one that is read twice, up to which it is written out each time."""


@dataclass(frozen=True)
class Definition:
    """A name for the elements of an expression.

    Parameters
    ----------
    indices
        The index variables that it depends on.
    value
        The expression, in terms of earlier definitions: those are loads from their names.
    """

    name: str
    indices: tuple[Expr, ...]
    value: Expr


def definitions(equations: Equations) -> list[Definition]:
    """Return names for reductions and for what is read twice; the last are the outputs.

    Arrays that are materialised stand before what loads their elements.
    """
    taken = {p.tensor for p in equations.parameters} | {o.name for o in equations.computed}
    stored = equations.materialised
    groups = [*([o] for o in stored), [o for o in equations.outputs if o not in stored]]
    return [d for outputs in groups for d in _definitions(outputs, taken)]


def _definitions(outputs: Sequence[Output], taken: set[str]) -> list[Definition]:
    """Return definitions for what is computed at once; their names are taken then."""
    elements = [o.element for o in outputs]
    readers = Counter(arg for x in walk(*elements) for arg in dict.fromkeys(x.args))
    places = [i for o in outputs for i in o.indices]
    extents = {x.value[0]: x.value[1] for x in walk(*places, *elements) if x.op == "index"}
    carried = {x.value[0] for x in walk(*elements) if x.op == "carry"}
    made: list[Definition] = []
    known: dict[Expr, Expr] = {}
    for x in walk(*elements):
        is_shared = readers[x] > 1 and len([*walk(rebuild(x, dict(known)))]) > _SMALL
        if x.op in ("const", "index") or not (x.op == "reduce" or is_shared):
            continue
        if x.free & carried:  # a step alone knows it
            continue
        name, count = "t0", 0
        while name in taken:
            count += 1
            name = f"t{count}"
        taken.add(name)
        indices = tuple(index(v, n) for v, n in extents.items() if v in x.free)
        made.append(Definition(name, indices, rebuild(x, dict(known))))
        known[x] = load(name, indices, x.dtype)
    return made + [Definition(o.name, o.indices, rebuild(o.element, dict(known))) for o in outputs]


def listed(equations: Equations) -> tuple[str, ...]:
    """Return the lines: parameters, names for parts, results."""
    lines = [f"{p.name}: {p.dtype}[{', '.join(map(str, p.shape))}]" for p in equations.parameters]
    outputs = {o.name: o for o in equations.computed}
    for d in definitions(equations):
        place = ", ".join(i.value[0] if i.op == "index" else str(i.value) for i in d.indices)
        told = _type(outputs[d.name]) if d.name in outputs else ""
        lines.append(f"{d.name}[{place}]{told} = {formula(d.value)}")
    return tuple(lines)


def _type(output: Output) -> str:
    return f": {output.dtype}[{', '.join(map(str, output.shape))}]"


def digest(lines: Sequence[str]) -> str:
    """Return what tells equations from others."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
