"""Products of tiles within the loop of a kernel: which reductions are some."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import COMPARISONS, Expr, extents_of, walk
from tile_api.arrays.planning.recurrence_parts import outermost
from tile_api.arrays.reductions.groups import Group, grouped, tiles_left, tiles_multiplied

_TILE = 64
"""Elements beside each other in a tile of a product."""
WIDEST_INNER = 256
"""Columns of a block: an inner product is computed again for each block of columns."""


def reads_less(
    nested: Expr, x: Expr, stream: str, extents: Mapping[str, int], widest: float
) -> bool:
    """Tell whether what is nested in an inner product is read more often than it is computed.

    Each block of rows that it does not change along would compute it again.
    """
    if stream not in nested.free or len(nested.free) < len(x.free):
        return True
    return any(extents[v] > widest for v in x.free - nested.free)


def is_inner_product(x: Expr, stream: str, tiled: Collection[str], *, inside: bool) -> bool:
    """Tell whether a reduction is a product of tiles in the loop over the stream.

    Both of its tiles may have variables of the grid, not rows or columns of the loop's products.
    """
    groups = (tiles_multiplied(x) or ()) if inside and stream in x.free else ()
    frees = [frozenset().union(*(f.free for f in g.factors)) for g in groups]
    return bool(frees) and not frozenset.intersection(*frees) & {*tiled} - {x.value[1]}


def tiled_variables(reductions: Iterable[Expr]) -> set[str]:
    """Return the rows and columns of reductions that are products of tiles."""
    groups = (g for x in reductions for g in tiles_multiplied(x) or ())
    return {v for g in groups for v in g.variables}


def has_wide_columns(elements: Sequence[Expr], stream: str, widest: float) -> bool:
    """Tell whether some product over the stream has more columns than one block.

    Another factor of it that is a product itself would be computed again for each block.
    """
    extents = extents_of(elements)
    for x in (n for element in elements for n in outermost(element) if n.value[1] == stream):
        groups = grouped(x.args[0], stream)
        for rows in groups:
            if not any(n.op == "reduce" and n.value[1] != stream for n in walk(*rows.factors)):
                continue
            own = {v for other in groups if other is not rows for v in other.variables}
            own = {v for v in own if all(v not in f.free for f in rows.factors)}
            if any(extents.get(v, 0) > widest for v in own):
                return True
    return False


def reductions_over(roots: Iterable[Expr], variable: str) -> list[Expr]:
    """Return the reductions over one variable, operands first."""
    return [x for x in walk(*roots) if x.op == "reduce" and x.value[1] == variable]


def compared_sums(elements: Iterable[Expr]) -> frozenset[Expr]:
    """Return sums that are compared with the largest of their kind, once that is known.

    Added up in another kernel, in another order, none might equal it. One kernel does both where
    rows are searched for the place of their extremum.
    """
    found: set[Expr] = set()
    todo: list[tuple[Expr, Expr | None]] = [(x, None) for x in elements]
    seen: set[tuple[Expr, Expr | None]] = set()
    while todo:
        x, around = todo.pop()
        if (x, around) in seen:
            continue
        seen.add((x, around))
        if x.op in COMPARISONS:
            for one, other in (x.args, x.args[::-1]):
                is_extremum = other.op == "reduce" and other.value[0] in ("max", "min")
                if is_extremum and one is other.args[0] and not _is_search(around, other):
                    found |= set(outermost(one))
        todo += [(arg, x if x.op == "reduce" else around) for arg in x.args]
    return frozenset(n for n in found if n.value[0] == "sum")


def _is_search(x: Expr | None, extremum: Expr) -> bool:
    """Tell whether a reduction goes through the rows that an extremum is of, once more."""
    return x is not None and x.value[1] == extremum.value[1] and x.free == extremum.free


def along(
    group: Group, free: Sequence[str], extents: Mapping[str, int], known: Sequence[str | None]
) -> str:
    """Return the variable of a group along which a tile lies: a known one, or the longest.

    One along which results are neighbours in memory may be half as long: tiles along another one
    would read and write single elements.
    """
    found = [v for v in known if v in group.variables]
    if found:
        return found[0] or ""
    longest = max(group.variables, key=lambda v: (extents[v], free.index(v)))
    last = free[-1]
    wanted = min(extents[longest], _TILE)
    return last if last in group.variables and 2 * extents[last] >= wanted else longest


def in_order(
    groups: Iterable[Group],
    free: Sequence[str],
    extents: Mapping[str, int],
    known: Sequence[str | None],
) -> list[tuple[str, Group]]:
    """Return the groups of a product of tiles, each with its variable: rows first, then columns."""
    found = [(along(g, free, extents, known), g) for g in groups]
    return sorted(found, key=lambda side: free.index(side[0]))


@dataclass(frozen=True)
class _Products:
    """The products over a stream, their rows and columns, and the reductions that are none.

    Parameters
    ----------
    rows
        Of each product, which is one as it is derived: without what does not change along it.
    """

    groups: Mapping[Expr, Sequence[Group]]
    rows: Mapping[Expr, str]
    columns: frozenset[str]
    folds: Sequence[Expr]


def _products(outputs: Sequence[Output], stream: str, extents: Mapping[str, int]) -> _Products:
    """Return what is reduced over a stream, with the rows and columns that a plan gives it."""
    free = [*dict.fromkeys(v for o in outputs for i in o.indices for v in sorted(i.free))]
    row: str | None = None
    rows: dict[Expr, str] = {}
    all_groups: dict[Expr, Sequence[Group]] = {}
    columns: list[str] = []
    folds = []
    for x in reductions_over([o.element for o in outputs], stream):
        groups = tiles_left(x)
        if groups is not None and all(g.variables <= {*free} for g in groups):
            (row, _), (column, _) = in_order(groups, free, extents, (row, *columns))
            rows[x], all_groups[x] = row, groups
            columns.append(column)
        elif x.free:
            folds.append(x)
    return _Products(all_groups, rows, frozenset(columns), folds)


def of_other_tiles(
    outputs: Sequence[Output], stream: str, extents: Mapping[str, int]
) -> list[Expr]:
    """Return products over the stream whose factors are no matrices in a kernel of all of them.

    The rows of a kernel are one variable, the last product's: of another one, a block has a value
    at a time. Factors that change along columns of other products, too, would have them besides.
    """
    found = _products(outputs, stream, extents)
    row = [*found.rows.values()][-1] if found.rows else ""

    def is_matrix(group: Group) -> bool:
        free = frozenset().union(*(f.free for f in group.factors))
        return len(free & {row, *found.columns}) == 1

    within = {n for x in _results_along_columns(found, outputs) for n in walk(x)}
    return [
        x for x, mine in found.rows.items()
        if x in within or mine != row or not all(map(is_matrix, found.groups[x]))
    ]  # fmt: skip


def _results_along_columns(found: _Products, outputs: Sequence[Output]) -> list[Expr]:
    """Return results that change along columns of products which they go through themselves."""
    ends = {o.element for o in outputs}
    folds = [x for x in found.folds if x in ends and x.free & found.columns]
    return [x for x in folds if any(n in found.rows for n in walk(x))]


def product_columns(outputs: Sequence[Output], stream: str, extents: Mapping[str, int]) -> set[str]:
    """Return the variables of the columns of products over the stream that one block has whole."""
    columns = _products(outputs, stream, extents).columns
    return {v for v in columns if extents[v] <= WIDEST_INNER}


def is_of_columns(x: Expr, stream: str, columns: set[str]) -> bool:
    """Tell whether a reduction is one of rows of a block that is complete after the loop."""
    inner = outermost(x.args[0])
    if x.value[0] == "prod" or x.value[1] not in columns or not inner:
        return False
    return all(n.value[1] == stream or is_of_columns(n, stream, columns) for n in inner)


def along_columns(outputs: Sequence[Output], stream: str, extents: Mapping[str, int]) -> list[Expr]:
    """Return the reductions over the stream that change along columns, and are no products.

    A result that goes through such a product itself is none: that is a kernel of its own.
    """
    found = _products(outputs, stream, extents)
    results = _results_along_columns(found, outputs)
    return [x for x in found.folds if x.free & found.columns and x not in results]
