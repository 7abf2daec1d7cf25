"""Reductions over windows that overlap: poolings, the taps of a filter of each channel.

No tile is made of their elements, each of which several windows have. Small ones are written out;
of larger ones the rows are, and are added to their accumulators one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import (
    Expr,
    add,
    const,
    extents_of,
    make,
    multiply,
    rebuild,
    walk,
)
from tile_api.arrays.equations.substitution import substituted
from tile_api.arrays.planning.window_runs import is_contiguous
from tile_api.arrays.reductions.groups import Group, grouped

MOST_WRITTEN_OUT = 25
"""Elements of a reduction that is written out: five by five taps."""
MOST_CHOSEN = 8
"""Elements of a reduction over results that were found one by one."""


def written_out(o: Output) -> Output:
    """Return an output without reductions over small windows, and over a few choices.

    No tile is made of windows, which overlap or lie apart. Choices: the weights of the best two.
    """
    mine = frozenset().union(*(i.free for i in o.indices))
    known: dict[Expr, Expr] = {}
    outer = {x.args[0]: x for x in walk(o.element) if x.op == "reduce"}
    for x in walk(o.element):
        if x.op != "reduce" or x.value[0] not in _STEPS or x.value[2] > MOST_WRITTEN_OUT:
            continue
        is_window = is_over_windows(x, mine) or (x in outer and is_by_rows(outer[x], mine))
        if not is_window and not (x.value[2] <= MOST_CHOSEN and _is_over_choices(x)):
            continue
        kind, name, count = x.value
        parts = [substituted(x.args[0], {name: const(k)}) for k in range(count)]
        made = _folded(kind, parts)
        known[x] = multiply(const(1 / count, made.dtype), made) if kind == "mean" else made
    return replace(o, element=rebuild(o.element, known)) if known else o


def is_by_rows(x: Expr, mine: frozenset[str]) -> bool:
    """Tell whether a reduction of reductions goes through windows row by row.

    Parameters
    ----------
    x
        A reduction whose operand is one of its kind.
    mine
        The variables of its result.
    """
    inner = x.args[0]
    if inner.op != "reduce" or inner.value[0] != x.value[0] or x.value[0] not in _STEPS:
        return False
    row, count = inner.value[2], x.value[2] * inner.value[2]
    if not 1 < row <= MOST_WRITTEN_OUT < count:
        return False
    return is_over_windows(inner, mine | {x.value[1]}) and goes_through_windows(x, mine, mine)


def goes_through_windows(x: Expr, mine: frozenset[str], rows: Iterable[str]) -> bool:
    """Tell whether elements of large windows are best added one by one, or row by row.

    Results that are neighbours along one of `rows` read neighbours then, and are as many at least.
    """
    _, name, count = x.value
    body = x.args[0].args[0] if x.args[0].op == "reduce" else x.args[0]
    if x.free != mine or sides(x) or not _is_moved(name, body):
        return False
    extents = extents_of([body])
    return any(extents.get(v, 0) >= count and is_contiguous(body, v) for v in rows)


def is_over_windows(x: Expr, mine: frozenset[str]) -> bool:
    """Tell whether a reduction goes along dimensions that its result goes along, too."""
    is_single = not any(n.op == "reduce" for n in walk(x.args[0]))
    return x.free == mine and is_single and not sides(x) and _is_moved(x.value[1], x.args[0])


def sides(x: Expr) -> list[Group]:
    """Return the two factors of a product, if a reduction is one."""
    groups = grouped(x.args[0], x.value[1]) if x.value[0] == "sum" else []
    return groups if len(groups) == 2 else []


def _is_moved(name: str, body: Expr) -> bool:
    """Tell whether windows are read that a variable and others are the index of."""
    indices = [i for n in walk(body) if n.op == "load" for i in n.args]
    is_searched = any(n.op == "load" for n in walk(*indices))
    return not is_searched and any(name in i.free and len(i.free) > 1 for i in indices)


def _folded(kind: str, parts: Sequence[Expr]) -> Expr:
    """Return the sum, product or extremum of expressions.

    An extremum that is NaN if an operand is reads each more than once: of pairs it is made of
    pairs, as a chain its text would double with each part.
    """
    if kind not in ("max", "min"):
        return functools.reduce(_STEPS[kind], parts)
    while len(parts) > 1:
        parts = [functools.reduce(_STEPS[kind], parts[k : k + 2]) for k in range(0, len(parts), 2)]
    return parts[0]


def _is_over_choices(x: Expr) -> bool:
    """Tell whether a reduction is over results that stand side by side, such as the best two."""
    name = x.value[1]
    parts = [n for n in walk(x.args[0]) if name in n.free]
    places = [arg for n in parts if n.op == "le" for arg in n.args[:1]]
    return any(name in place.free for place in places)


_STEPS: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "sum": add,
    "mean": add,
    "prod": multiply,
    "max": functools.partial(make, "maximum"),
    "min": functools.partial(make, "minimum"),
}
