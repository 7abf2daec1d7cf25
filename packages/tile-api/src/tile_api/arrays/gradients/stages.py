"""The adjoint of equations with arrays that are stored: stage by stage, the last one first.

A stored array has an adjoint, which is stored, too: the sum of what all those give that load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Equations, Output, Parameter, indices_of
from tile_api.arrays.equations.expressions import Expr, add, const, load, rebuild, walk
from tile_api.arrays.equations.substitution import substituted
from tile_api.arrays.gradients.adjoint import adjoint, new_name

MOST_TERMS = 4
"""Stages that read an array, after which what they give is summed and stored."""


def adjoint_of(equations: Equations, wrt: Sequence[str]) -> Equations:
    """Return the equations of a vector-Jacobian product: see `adjoint`.

    Arrays that `equations` store are stored by what is returned, too.
    """
    if not equations.materialised:
        return adjoint(equations, wrt)
    return _Stages(equations, wrt).adjoint()


class _Stages:
    def __init__(self, equations: Equations, wrt: Sequence[str]) -> None:
        self.equations = equations
        self.taken = {p.tensor for p in equations.parameters}
        self.taken |= {o.name for o in equations.computed}
        parameters = {p.name: p for p in equations.parameters}
        self.wanted = [parameters[name] for name in wrt]
        self.cotangents = [
            Parameter(new_name(f"d_{o.name}", self.taken), o.shape, o.dtype)
            for o in equations.outputs
            if o.dtype.is_float
        ]
        self.made: list[Output] = []
        self.terms: dict[str, list[Output]] = {}

    def adjoint(self) -> Equations:
        """Go through the stages backwards."""
        equations = self.equations
        self._spread(equations.outputs, [c.tensor for c in self.cotangents])
        for o in reversed(equations.materialised):
            if terms := self.terms.pop(o.name, []):
                total = self._stored(o.name, terms)
                self._spread([o], [total.name])
        outputs = []
        for p in self.wanted:
            zero = Output("", p.shape, p.dtype, indices_of(p.shape), const(0, p.dtype))
            total = _sum(self.terms.get(p.tensor, []) or [zero])
            outputs.append(replace(total, name=new_name(f"d_{p.tensor}", self.taken)))
        return replace(
            equations,
            name=f"{equations.name}_vjp",
            parameters=(*equations.parameters, *self.cotangents),
            outputs=tuple(outputs),
            structure=tuple,
            materialised=(*equations.materialised, *self.made),
        )

    def _spread(self, outputs: Sequence[Output], cotangents: Sequence[str]) -> None:
        """Add what a stage gives to the adjoints of what it loads."""
        read = {n.value for n in walk(*(o.element for o in outputs)) if n.op == "load"}
        tensors = {p.tensor: p for p in self.equations.parameters}
        tensors |= {
            o.name: Parameter(o.name, o.shape, o.dtype) for o in self.equations.materialised
        }
        asked = {p.tensor for p in self.wanted} | {o.name for o in self.equations.materialised}
        wrt = [name for name in tensors if name in read & asked and tensors[name].dtype.is_float]
        if not wrt:
            return
        mine = [tensors[name] for name in tensors if name in read]
        stage = Equations(self.equations.name, tuple(mine), tuple(outputs), tuple)
        found = adjoint(stage, [tensors[name].name for name in wrt])
        names = [c.tensor for c in found.parameters[len(mine) :]]
        given = dict(zip(names, cotangents, strict=True))
        for name, o in zip(wrt, found.outputs, strict=True):
            known: dict[Expr, Expr] = {}
            for n in walk(o.element):
                if n.op == "load" and n.value in given:
                    args = tuple(rebuild(arg, known) for arg in n.args)
                    known[n] = load(given[n.value], args, n.dtype)
            self.terms.setdefault(name, []).append(replace(o, element=rebuild(o.element, known)))
            if len(self.terms[name]) > MOST_TERMS:
                self.terms[name] = [self._stored(name, self.terms[name])]

    def _stored(self, name: str, terms: Sequence[Output]) -> Output:
        """Store a sum; return what loads it."""
        total = replace(_sum(terms), name=new_name(f"d_{name}", self.taken))
        self.made.append(total)
        return replace(total, element=load(total.name, total.indices, total.dtype))


def _sum(terms: Sequence[Output]) -> Output:
    """Return the sum of arrays of one shape."""
    first, *others = terms
    element = first.element
    for other in others:
        pairs = zip(other.indices, first.indices, strict=True)
        names = {i.value[0]: mine for i, mine in pairs if i.op == "index"}
        element = add(element, substituted(other.element, names))
    return replace(first, element=element)
