"""Adjoints of pieces of tensors: where they are in those of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from tile_api.arrays.equations.equations import Output, Parameter, indices_of
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    compared,
    computed_in,
    const,
    make,
    where,
)
from tile_api.arrays.equations.pieces import Piece
from tile_api.arrays.equations.substitution import substituted


def element_at(o: Output, indices: Iterable[Expr]) -> Expr:
    """Return the element at other indices."""
    pairs = zip(o.indices, indices, strict=True)
    return substituted(o.element, {i.value[0]: at for i, at in pairs if i.op == "index"})


def name_of(piece: Piece) -> str:
    """Return what the names of a piece's adjoints begin with."""
    starts = [str(place[0]) for place in piece.places if place is not None]
    return "_".join((piece.tensor.rstrip("_"), *starts))


def is_row(piece: Piece) -> bool:
    """Tell whether a piece is all of a tensor at one place of its first dimension."""
    first, *others = piece.places
    return first is not None and first[1] < 0 and others == [None] * len(others)


def of_rows(of: Parameter, rows: Mapping[int, Output], count: int) -> Output:
    """Return so many rows like those of a tensor, of which some are not 0."""
    shape = (count, *of.shape[1:])
    indices = indices_of(shape)
    made = const(0, computed_in(of.dtype))
    for k, o in sorted(rows.items(), reverse=True):
        mine = element_at(o, indices[1:])
        made = where(make("eq", indices[0], const(k)), mine, made) if count > 1 else mine
    return Output("", shape, of.dtype, indices, made)


def placed(piece: Piece, o: Output, of: Parameter) -> Output:
    """Return a piece of a tensor where it is, among zeros."""
    indices = indices_of(of.shape)
    tests, inner = list[Expr](), list[Expr]()
    for place, i in zip(piece.places, indices, strict=True):
        if place is None:
            inner.append(i)
            continue
        start, size = place
        if size < 0:
            tests.append(make("eq", i, const(start)))
        else:
            inner.append(add(const(-start), i))
            tests += [compared("le", const(start), i), compared("lt", i, const(start + size))]
    tests = [test for test in tests if test.op != "const"]  # those are true: it is inside
    is_there = reduce(lambda one, other: make("and", one, other), tests)
    element = where(is_there, element_at(o, inner), const(0, computed_in(of.dtype)))
    return Output("", of.shape, of.dtype, indices, element)
