"""Products of one row: a vector times a matrix is a product of tiles, as matrices are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, const, index, make, rebuild, walk
from tile_api.arrays.reductions.algebra import factors, product
from tile_api.arrays.reductions.groups import Group, grouped

ONE = "one"
"""The variable of a dimension of one element, the row of such products."""


def with_rows(outputs: Sequence[Output]) -> list[Output]:
    """Return outputs in which vectors that are multiplied with matrices are rows.

    Only where no product has rows already: they are for all products of a kernel.
    """
    made = list(outputs)
    while True:
        elements = [o.element for o in made]
        reductions = [x for x in walk(*elements) if x.op == "reduce"]
        if any(ONE not in x.free and len(_groups(x)) == 2 for x in reductions):
            return list(outputs)
        loads = [n for x in _vector_products(reductions) for n in _vector(x)]
        if not loads:
            return list(outputs) if _has_sums_of_columns(reductions) else made
        rows = {n: make("spread", n, index(ONE, 1), value=n.value, dtype=n.dtype) for n in loads}
        made = [replace(o, element=rebuild(o.element, dict(rows))) for o in made]


def has_vectors(x: Expr) -> bool:
    """Tell whether a reduction goes through products of vectors and matrices."""
    inner = [n for n in walk(x) if n.op == "reduce"]
    return any(n is not x for n in _vector_products(inner))


def _has_sums_of_columns(reductions: Sequence[Expr]) -> bool:
    """Tell whether a sum that is no product goes along columns of one, in the same loop."""
    groups = {x: _groups(x) for x in reductions}
    products = {x: sides for x, sides in groups.items() if len(sides) == 2}
    columns = {(x.value[1], v) for x, sides in products.items() for g in sides for v in g.variables}
    columns = {(over, v) for over, v in columns if v != ONE}
    return any((x.value[1], v) in columns for x in reductions if x not in products for v in x.free)


def _groups(x: Expr) -> list[Group]:
    """Return the groups of those factors of a sum that are read along it: others leave it."""
    kind, over, _ = x.value
    inside = [f for f in factors(x.args[0]) if over in f.free]
    return grouped(product(inside, const(1, x.dtype)), over) if kind == "sum" else []


def _vector_products(reductions: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the products of a vector and a matrix that are better products of tiles.

    Those in the loop of another reduction, and those with one matrix whose rows are summed.
    """
    reductions = [*reductions]
    nested = {
        n for x in reductions for n in walk(x.args[0]) if n.op == "reduce" and x.value[1] in n.free
    }
    # Read along further variables, a product would be computed again for each block of these.
    spread = {
        n
        for x in reductions
        if not all(_sides(x))
        for n in walk(x.args[0])
        if n.op == "reduce" and not x.free <= n.free
    }
    for x in reductions:
        over = x.value[1]
        if x.value[0] != "sum" or ONE in x.free or not x.dtype.is_float or not _vector(x):
            continue
        loads = [n for n in walk(*_matrix(x)) if n.op == "load"]
        last = [i for n in loads for i in n.args[-1:]]
        has_rows = any(i.op == "index" and i.value[0] != over for i in last)
        is_one = len([n for n in loads if len(n.free) > 1]) == 1
        if (x in nested and x not in spread) or (has_rows and is_one):
            yield x


def _sides(x: Expr) -> tuple[list[Expr], list[Expr]]:
    """Return the factors that have no variable of their own beside that of the sum, and others."""
    over = x.value[1]
    parts = [f for f in factors(x.args[0]) if over in f.free]
    shared = frozenset.intersection(*(f.free for f in parts)) if parts else frozenset()
    vector = [f for f in parts if f.free == shared]
    return vector, [f for f in parts if f not in vector]


def _matrix(x: Expr) -> list[Expr]:
    return _sides(x)[1]


def _vector(x: Expr) -> list[Expr]:
    """Return the loads of the vector's elements; none if `x` is no product with a matrix."""
    vector, matrix = _sides(x)
    inner = set(walk(*(n.args[0] for n in walk(*vector) if n.op == "reduce")))
    loads = (n for n in walk(*vector) if n.op == "load" and n not in inner)
    return [n for n in loads if x.value[1] in n.free] if matrix else []
