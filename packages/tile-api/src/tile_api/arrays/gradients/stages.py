"""The adjoint of equations with arrays that are stored: stage by stage, the last one first.

A stored array has an adjoint, which is stored, too: the sum of what all those give that load it.
So has a piece of a tensor that a step of a loop reads; those of all steps are joined in the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Equations, Output, Parameter, indices_of
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    compared,
    const,
    load,
    rebuild,
    walk,
    where,
)
from tile_api.arrays.equations.pieces import Piece, out_of_pieces
from tile_api.arrays.gradients.adjoint import adjoint, new_name
from tile_api.arrays.gradients.pieces import element_at, is_row, name_of, of_rows, placed
from tile_api.arrays.planning.stages import InPieces, pieces_of

MOST_TERMS = 4
"""Stages that read an array, after which what they give is summed and stored."""
MOST_JOINED = 16
"""Rows that are joined at once: each element is looked for among so many."""


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
        stored = {o.name: Parameter(o.name, o.shape, o.dtype) for o in equations.materialised}
        self.tensors = {p.tensor: p for p in equations.parameters} | stored
        asked = {p.tensor for p in self.wanted} | {*stored}
        self.asked = {name for name in asked if self.tensors[name].dtype.is_float}
        self.cotangents = [
            Parameter(new_name(f"d_{o.name}", self.taken), o.shape, o.dtype)
            for o in equations.outputs
            if o.dtype.is_float
        ]
        self.made: list[Output] = []
        self.terms: dict[str, list[Output]] = {}
        self.pieces: dict[str, dict[Piece, list[Output]]] = {}

    def adjoint(self) -> Equations:
        """Go through the stages backwards."""
        equations = self.equations
        *before, last = pieces_of(equations)
        self._spread(last, [c.tensor for c in self.cotangents])
        for stage in reversed(before):
            ((o,), _) = stage
            if terms := self._terms_of(o.name):
                total = self._stored(o.name, terms)
                self._spread(stage, [total.name])
        outputs = []
        for p in self.wanted:
            zero = Output("", p.shape, p.dtype, indices_of(p.shape), const(0, p.dtype))
            total = _sum(self._terms_of(p.tensor) or [zero])
            outputs.append(replace(total, name=new_name(f"d_{p.tensor}", self.taken)))
        return replace(
            equations,
            name=f"{equations.name}_vjp",
            parameters=(*equations.parameters, *self.cotangents),
            outputs=tuple(outputs),
            structure=tuple,
            materialised=(*equations.materialised, *self.made),
        )

    def _spread(self, stage: InPieces, cotangents: Sequence[str]) -> None:
        """Add what a stage gives to the adjoints of what it loads."""
        outputs, pieces = stage
        read = {n.value for n in walk(*(o.element for o in outputs)) if n.op == "load"}
        tensors = self.tensors | {
            name: piece.parameter(name, self.tensors[piece.tensor])
            for name, piece in pieces.items()
        }
        asked = self.asked | {name for name, p in pieces.items() if p.tensor in self.asked}
        wrt = [name for name in tensors if name in read & asked]
        if not wrt:
            return
        mine = [tensors[name] for name in tensors if name in read]
        equations = Equations(self.equations.name, tuple(mine), outputs, tuple)
        found = adjoint(equations, [tensors[name].name for name in wrt])
        names = [c.tensor for c in found.parameters[len(mine) :]]
        given = dict(zip(names, cotangents, strict=True))
        wholes = {name: (piece, tensors[name].dtype) for name, piece in pieces.items()}
        for name, o in zip(wrt, found.outputs, strict=True):
            known: dict[Expr, Expr] = {}
            for n in walk(o.element):
                if n.op == "load" and n.value in given:
                    args = tuple(rebuild(arg, known) for arg in n.args)
                    known[n] = load(given[n.value], args, n.dtype)
            term = replace(o, element=out_of_pieces(rebuild(o.element, known), wholes))
            if name in pieces:
                of = self.pieces.setdefault(pieces[name].tensor, {})
                self._add(of.setdefault(pieces[name], []), name_of(pieces[name]), term)
            else:
                self._add(self.terms.setdefault(name, []), name, term)

    def _add(self, terms: list[Output], name: str, term: Output) -> None:
        """Add a term to those of a tensor; many are summed and stored."""
        terms.append(term)
        if len(terms) > MOST_TERMS:
            terms[:] = [self._stored(name, terms)]

    def _terms_of(self, name: str) -> list[Output]:
        """Return what is known to be added to the adjoint of a tensor: it is, with its pieces."""
        terms = self.terms.pop(name, [])
        found = self.pieces.pop(name, {})
        pieces = {p: self._stored(name_of(p), each) for p, each in found.items()}
        rows = {p: o for p, o in pieces.items() if is_row(p)}
        if rows:
            self._add(terms, name, self._joined(self.tensors[name], rows))
        for piece, o in pieces.items():
            if piece not in rows:
                self._add(terms, name, placed(piece, o, self.tensors[name]))
        return terms

    def _joined(self, of: Parameter, rows: Mapping[Piece, Output]) -> Output:
        """Return rows of a tensor, some after the other; those that are not given are 0."""
        known = {p.places[0][0]: o for p, o in rows.items() if p.places[0] is not None}
        order = sorted(known)
        starts = [0, *order[MOST_JOINED::MOST_JOINED], of.shape[0]]
        parts = [
            of_rows(of, {k - start: known[k] for k in order if start <= k < end}, end - start)
            for start, end in itertools.pairwise(starts)
        ]
        if len(parts) == 1:
            return parts[0]
        parts = [self._stored(of.tensor, [part]) for part in parts]
        indices = indices_of(of.shape)
        made: Expr | None = None
        for start, end, part in reversed([*zip(starts, starts[1:], parts, strict=False)]):
            mine = element_at(part, (add(const(-start), indices[0]), *indices[1:]))
            is_before = compared("lt", indices[0], const(end))
            made = mine if made is None else where(is_before, mine, made)
        assert made is not None
        return Output("", of.shape, of.dtype, indices, made)

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
        element = add(element, element_at(other, first.indices))
    return replace(first, element=element)
