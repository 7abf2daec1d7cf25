"""Where the largest of a row stands: kernels may round otherwise what it was once found among."""

from __future__ import annotations

from tile_api.arrays.equations.expressions import (
    COMPARISONS,
    LOGICAL,
    Expr,
    const,
    make,
    reduce,
    walk,
    where,
)
from tile_api.arrays.equations.expressions import index as index_of

_ALIKE = COMPARISONS | LOGICAL | {
    "const", "index", "load", "where", "maximum", "minimum", "absolute", "cast", "add", "multiply",
    "floordiv", "mod",
}  # fmt: skip
"""What all kernels round alike."""


def is_extremum(x: Expr) -> bool:
    """Tell whether `x` is the largest, or the least, of a row of floats."""
    return x.op == "reduce" and x.value[0] in ("max", "min") and x.dtype.is_float


def is_rounded_alike(x: Expr) -> bool:
    """Tell whether `x` has the same bits wherever it is computed: sums of products may not."""
    return all(n.op in _ALIKE and not (n.op == "add" and _has_products(n)) for n in walk(x))


def _has_products(x: Expr) -> bool:
    """Tell whether terms are products: with an addition they may be rounded once."""
    products = (a for a in x.args if a.op == "multiply" and a.dtype.is_float)
    return any(not any(f.op == "const" and abs(f.value) == 1 for f in p.args) for p in products)


def position_of(extremum: Expr) -> Expr:
    """Return the first index at which an extremum stands, or how many there are if at none."""
    _, variable, extent = extremum.value
    is_there = make("eq", extremum.args[0], extremum)
    here = where(is_there, index_of(variable, extent), const(extent))
    return reduce("min", variable, extent, here)
