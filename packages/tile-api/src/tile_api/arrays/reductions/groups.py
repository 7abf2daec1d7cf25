"""The factors of a sum, by the variables that only some of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tile_api.arrays.equations.expressions import Expr, walk
from tile_api.arrays.reductions.algebra import factors
from tile_core.dtypes import DType


@dataclass(frozen=True)
class Group:
    """Factors of a sum that share variables which not all of its factors have."""

    variables: frozenset[str]
    factors: tuple[Expr, ...]


def grouped(body: Expr, variable: str) -> list[Group]:
    """Return the factors of a sum over `variable`, by the variables that only some of them have.

    A factor that has but some variables of another one, such as a mask that is the same for all
    heads, goes with that one.
    """
    return _groups_of(factors(body), variable)


def _groups_of(parts: Sequence[Expr], variable: str) -> list[Group]:
    sets = [part.free - {variable} for part in parts]
    known = [s for s in sets if s]
    widest = [s for s in known if not any(s < other for other in known)]
    counted = widest if len(set(widest)) > 1 else known
    shared = frozenset.intersection(*counted or [frozenset()])
    groups: list[tuple[set[str], list[Expr]]] = []
    loose: list[Expr] = []
    for part, variables in zip(parts, sets, strict=True):
        own = set(variables - shared)
        if not own:
            loose.append(part)
            continue
        hit = [g for g in groups if g[0] & own]
        groups = [g for g in groups if g not in hit]
        joined = own.union(*(g[0] for g in hit))
        groups.append((joined, [part, *(f for g in hit for f in g[1])]))
    if not groups:
        return [Group(frozenset(), tuple(loose))]
    # An exponential alone might overflow: it stays with those that it is taken of a sum with.
    with_powers = next((g for g in groups if any(f.op == "exp" for f in g[1])), groups[0])
    for part in loose:
        (with_powers if part.op == "exp" else groups[0])[1].append(part)
    return [Group(frozenset(own), tuple(members)) for own, members in groups]


def product_groups(body: Expr, variable: str) -> list[Group] | None:
    """Return the two groups of factors of a product of tiles; None if a sum is no such product.

    Both are read along the variable.
    """
    return _product_of(factors(body), body.dtype, variable)


def _product_of(parts: Sequence[Expr], dtype: DType, variable: str) -> list[Group] | None:
    if not (dtype.is_float or dtype.bits >= 32):
        return None
    groups = _groups_of(parts, variable)
    are_read = all(any(variable in f.free for f in g.factors) for g in groups)
    return groups if len(groups) == 2 and are_read else None


def tiles_multiplied(x: Expr) -> list[Group] | None:
    """Return the two groups of factors of a reduction that is a product of tiles; else None."""
    kind, over, _ = x.value
    return product_groups(x.args[0], over) if kind == "sum" else None


def tiles_left(x: Expr) -> list[Group] | None:
    """Return the same of a reduction as it is derived: the rule `hoist` takes other sums out."""
    kind, over, _ = x.value
    body = x.args[0]

    def is_hoisted(part: Expr) -> bool:
        is_apart = over not in part.free and part.op != "exp" and part.dtype.is_float
        return is_apart and any(n.op == "reduce" and n.value[1] == over for n in walk(part))

    parts = [part for part in factors(body) if not is_hoisted(part)]
    return _product_of(parts, body.dtype, over) if kind == "sum" and parts else None


def is_product_of_two(x: Expr) -> bool:
    """Tell whether the factors of a sum are in two groups, read along it or not."""
    kind, over, _ = x.value
    return kind == "sum" and len(grouped(x.args[0], over)) == 2
