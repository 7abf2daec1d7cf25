"""Stages of a program: each computes one array that is stored, or the results.

Steps of a loop of Python are stages that differ in nothing but the tensors that they read and
make: they have the same kernels. Where they read a tensor at constant places that change from step
to step, they read pieces of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import prod
from typing import TypeVar

from tile_api.arrays.equations.equations import (
    Equations,
    Output,
    Parameter,
    indices_of,
    structure_of,
)
from tile_api.arrays.equations.expressions import load
from tile_api.arrays.equations.pieces import Piece, Place, in_pieces, out_of_pieces

_T = TypeVar("_T")


@dataclass(frozen=True)
class Stage:
    """What is computed at once.

    Parameters
    ----------
    equations
        Their parameters are the tensors that are read, arrays that are stored among them.
    key
        Equal for stages that differ in the names of tensors alone.
    tensors
        The tensors that are read, and then those that are made, in the order of `key`.
    pieces
        Those of `tensors` that are parts of others, by name.
    """

    equations: Equations
    key: str
    tensors: tuple[str, ...]
    pieces: Mapping[str, Piece] = field(default_factory=dict)

    @property
    def called(self) -> tuple[str, ...]:
        """What programs call `tensors`: pieces by what they are parts of."""
        return tuple(str(self.pieces.get(name, name)) for name in self.tensors)


def stages(equations: Equations) -> Iterator[Stage]:
    """Yield the stages of equations, in the order in which they run."""
    if not equations.materialised:
        yield Stage(equations, "", ())
        return
    given = {p.tensor: p for p in equations.parameters}
    given |= {o.name: Parameter(o.name, o.shape, o.dtype) for o in equations.computed}
    for outputs, pieces in _with_turned(given, pieces_of(equations)):
        given |= {o.name: Parameter(o.name, o.shape, o.dtype) for o in outputs}
        known = given | {name: piece.parameter(name, given[piece.tensor])
                         for name, piece in pieces.items()}  # fmt: skip
        names: dict[str, int] = {}
        told = structure_of(outputs, names)
        told += [(str(known[name].shape), known[name].dtype) for name in names]
        mine = replace(
            equations, parameters=tuple(known[name] for name in names), outputs=outputs,
            structure=tuple, constants=(), materialised=(),
        )  # fmt: skip
        yield Stage(mine, repr(told), (*names, *(o.name for o in outputs)), pieces)


Outputs = tuple[Output, ...]
InPieces = tuple[Outputs, dict[str, Piece]]
"""Outputs of a stage in terms of pieces, and these by name."""


def _with_turned(given: Mapping[str, Parameter], parts: Sequence[InPieces]) -> Iterator[InPieces]:
    """Yield stages, with those before that turn tensors so that pieces lie together.

    What is left are pieces that do.
    """
    asked: dict[Turn, set[Piece]] = {}
    for _, pieces in parts:
        for piece in pieces.values():
            if not piece.is_dense(given[piece.tensor].shape):
                asked.setdefault(_turn_of(piece), set()).add(piece)
    taken, turned = {*given}, dict[Turn, str]()
    for outputs, pieces in parts:
        mine: dict[str, Piece] = {}
        for name, piece in pieces.items():
            turn, of = _turn_of(piece), given[piece.tensor]
            if turn not in asked:
                mine[name] = piece
            elif 2 * len(asked[turn]) >= prod(of.shape[k] for k in turn[1]):
                if turn not in turned:
                    turned[turn] = _new(f"{piece.tensor}_turned", taken)
                    yield (_turned(of, turn, turned[turn]),), {}
                mine[name] = Piece(turned[turn], _sorted(piece.places, turn))
        left = {name: (p, given[p.tensor].dtype) for name, p in pieces.items() if name not in mine}
        yield tuple(replace(o, element=out_of_pieces(o.element, left)) for o in outputs), mine


Turn = tuple[str, tuple[int, ...]]
"""A tensor, and its dimensions that come first when it is turned."""


def _turn_of(piece: Piece) -> Turn:
    return piece.tensor, tuple(k for k, p in enumerate(piece.places) if p is not None)


def _sorted(found: Sequence[_T], turn: Turn) -> tuple[_T, ...]:
    """Return what belongs to dimensions as they are when the tensor is turned."""
    rest = [k for k in range(len(found)) if k not in turn[1]]
    return tuple(found[k] for k in (*turn[1], *rest))


def _turned(of: Parameter, turn: Turn, name: str) -> Output:
    indices = indices_of(of.shape)
    element = load(of.tensor, indices, of.dtype)
    return Output(name, _sorted(of.shape, turn), of.dtype, _sorted(indices, turn), element)


def pieces_of(equations: Equations) -> list[InPieces]:
    """Return each stage in terms of pieces: those that start elsewhere in others like it."""
    made = {o.name for o in equations.materialised}
    groups: list[Outputs] = [(o,) for o in equations.materialised]
    groups.append(tuple(o for o in equations.outputs if o.name not in made))
    given = {p.tensor: p for p in equations.parameters}
    given |= {o.name: Parameter(o.name, o.shape, o.dtype) for o in equations.computed}
    found = [_reads(outputs, given) for outputs in groups]
    alike: dict[str, list[Sequence[Piece]]] = {}
    for key, reads in found:
        alike.setdefault(key, []).append(reads)
    changing = {key: _changing(reads) for key, reads in alike.items()}
    return [
        _in_terms(outputs, given, dict(zip(reads, changing[key], strict=True)))
        for outputs, (key, reads) in zip(groups, found, strict=True)
    ]


def _reads(outputs: Outputs, given: Mapping[str, Parameter]) -> tuple[str, Sequence[Piece]]:
    """Return what a stage reads, each piece as small as it can be; and what it does with them."""
    pieces: dict[str, Piece] = {}

    def name_of(piece: Piece) -> tuple[str, Piece]:
        pieces[str(piece)] = piece
        return str(piece), piece

    names: dict[str, int] = {}
    told = structure_of(in_pieces(outputs, given, name_of), names)
    reads = [pieces.get(name) or _whole(given[name]) for name in names]
    told += [(str(p.shape(given[p.tensor].shape)), given[p.tensor].dtype) for p in reads]
    return repr(told), reads


def _whole(of: Parameter) -> Piece:
    return Piece(of.tensor, (None,) * len(of.shape))


def _changing(reads: Sequence[Sequence[Piece]]) -> list[frozenset[int]]:
    """Return of each piece along which dimensions stages start it at several places."""
    if len(reads) < 2:
        return [frozenset()] * len(reads[0])
    return [
        frozenset(
            k for k, places in enumerate(zip_longest(*(p.places for p in each)))
            if len({*places}) > 1
        )
        for each in zip(*reads, strict=True)
    ]  # fmt: skip


def _in_terms(
    outputs: Outputs, given: Mapping[str, Parameter], reads: Mapping[Piece, frozenset[int]]
) -> InPieces:
    """Return outputs in terms of the pieces that change."""
    taken = {piece: _taken(piece, dims) for piece, dims in reads.items() if dims}
    taken = {piece: mine for piece, mine in taken.items() if _can_be_read(mine, given)}
    used, names = {*given}, dict[Piece, str]()
    for mine in dict.fromkeys(taken.values()):
        names[mine] = _new(f"{mine.tensor.rstrip('_')}_at", used)
    made = in_pieces(outputs, given, lambda p: (names[taken[p]], taken[p]) if p in taken else None)
    return made, {name: piece for piece, name in names.items()}


def _can_be_read(piece: Piece, given: Mapping[str, Parameter]) -> bool:
    """Tell whether kernels can read a piece: it lies together, or does where it is turned."""
    of = given[piece.tensor]
    is_at = all(p is None or p[1] < 0 for p in piece.places)
    is_part = any(p is not None for p in piece.places)
    return is_part and of.dtype.packing == 1 and (is_at or piece.is_dense(of.shape))


def _taken(piece: Piece, dims: frozenset[int]) -> Piece:
    """Return a piece that starts where it changes, and at numbers before."""
    last = max(dims)
    places: list[Place | None] = [
        p if k in dims or (k < last and p is not None and p[1] < 0) else None
        for k, p in enumerate(piece.places)
    ]
    return Piece(piece.tensor, tuple(places))


def _new(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
