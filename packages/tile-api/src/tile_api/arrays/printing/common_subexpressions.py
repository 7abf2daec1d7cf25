"""Common subexpressions of a statement: text grows with what is computed, not with what is read."""

from __future__ import annotations

from collections.abc import Container

from tile_api.arrays.equations.expressions import Expr, walk

MOST_WRITTEN = 256
"""Expressions of a statement that is written without names."""
SHORT = 8
"""Expressions within one that is written out each time."""
DEEPEST = 64
"""How deep the text of one statement may nest: Python's parser has an end."""

_PLAIN = frozenset(("const", "index", "reciprocal"))
"""What has no name: a product with a named reciprocal would be rounded twice."""


def common_subexpressions(x: Expr, known: Container[Expr]) -> list[Expr]:
    """Return parts of `x` that are to have names, operands first.

    Parameters
    ----------
    known
        What has been computed before: it is read.
    """
    order = list(walk(x))
    sizes: dict[Expr, int] = {}
    for n in order:
        sizes[n] = 1 if n in known else 1 + sum(sizes[arg] for arg in n.args)
    is_long = sizes[x] > MOST_WRITTEN
    times = dict.fromkeys(order, 0)
    times[x] = 1
    named: set[Expr] = set()
    for n in reversed(order):
        if is_long and times[n] > 1 and sizes[n] > SHORT and n.op not in _PLAIN:
            named.add(n)
        for arg in () if n in known else n.args:
            times[arg] += 1 if n in named else times[n]
    depth: dict[Expr, int] = {}
    for n in order:
        is_read = n in known or n in named or not times[n]
        depth[n] = 0 if is_read else 1 + max((depth[arg] for arg in n.args), default=0)
        if depth[n] >= DEEPEST and n is not x and n.op not in _PLAIN:
            named.add(n)
            depth[n] = 0
    return [n for n in order if n in named]
