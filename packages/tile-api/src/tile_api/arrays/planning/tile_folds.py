"""Reductions of the rows of a tile that a product in a loop reads whole, such as norms of keys.

``Σ_d q_id k_jd / |k_j|`` has the rows of `k` at hand: their norms are folds of the tile, and come
out of the sum, so that the product reads the elements as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, const, rebuild, reduce, walk
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.reductions.algebra import factors, product
from tile_api.arrays.reductions.groups import tiles_multiplied

_KINDS = ("sum", "mean", "max", "min")


def with_folds_outside(outputs: Sequence[Output]) -> list[Output]:
    """Return outputs in which factors with folds of rows multiply products in loops from outside.

    Only where elements as they are remain: of anything else nobody knows that it fits into the
    type of a matrix instruction's operand.
    """
    if is_strict():
        return list(outputs)
    elements = [o.element for o in outputs]
    nested = {n for x in walk(*elements) if x.op == "reduce" for n in walk(*x.args)}
    known: dict[Expr, Expr] = {}
    for x in walk(*elements):
        made = rebuild(x, known)
        if x in nested and made.op == "reduce":
            known[x] = _outside(made)
    return [replace(o, element=rebuild(o.element, known)) for o in outputs] if known else [*outputs]


def _outside(x: Expr) -> Expr:
    kind, over, extent = x.value
    groups = tiles_multiplied(x)
    if groups is None or not x.dtype.is_float:
        return x
    outside: list[Expr] = []
    for group in groups:
        scales = [f for f in group.factors if over not in f.free and _folds([f], over)]
        rest = [f for f in group.factors if f not in scales]
        if len(rest) == 1 and rest[0].op == "load" and _loads(_folds(scales, over)) <= {rest[0]}:
            outside += scales
    if not outside:
        return x
    one = const(1, x.dtype)
    inside = product([f for f in factors(x.args[0]) if f not in outside], one)
    return product([*outside, reduce(kind, over, extent, inside)], one)


def _folds(roots: Iterable[Expr], over: str) -> list[Expr]:
    """Return the reductions over a variable that read no others."""
    return [n for n in walk(*roots) if is_fold(n) and n.value[1] == over]


def _loads(roots: Iterable[Expr]) -> set[Expr]:
    return {n for n in walk(*roots) if n.op == "load"}


def is_fold(x: Expr) -> bool:
    """Tell whether a reduction is one of elements, and no product."""
    if x.op != "reduce" or x.value[0] not in _KINDS or not x.dtype.is_float:
        return False
    return not tiles_multiplied(x) and not any(n.op == "reduce" for n in walk(*x.args))


def folds_of_tiles(bodies: Iterable[Expr]) -> set[Expr]:
    """Return the folds of rows of a tile that a product reads, within what a loop computes."""
    inside = [n for n in walk(*bodies) if n.op == "reduce"]
    found: set[Expr] = set()
    for x in inside:
        groups = tiles_multiplied(x)
        tiles = [{n for n in _loads(g.factors) if x.value[1] in n.free} for g in groups or ()]
        mine = (n for n in inside if is_fold(n) and n.value[1] == x.value[1])
        found.update(n for n in mine if any(_loads([n]) <= tile for tile in tiles))
    return found
