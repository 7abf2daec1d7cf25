"""Sums over indices that are data: each element of a result collects what was read from it.

``Σ_s where(index[s] == u, x[s, d], 0)`` is the gradient of a gather. Compared with each `u`, all of
`x` would be gone through again and again; a block of elements goes through the indices instead,
and adds ``x[s]`` where one is of the block. The order is that of `s`: equal arguments give equal
bits, as atomics would not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, walk

FEWEST_INDICES = 16
"""Fewer are compared with all elements at once."""
LOOPS = ("ko", "kt")
"""The indices of loops."""


@dataclass(frozen=True)
class Scatter:
    """A sum that goes to the element that an index says.

    Parameters
    ----------
    row
        The variable of the result that `index` is compared with.
    conditions
        What else holds where something is added.
    element
        What is added.
    over
        The variables that the sum goes over, with their extents.
    """

    row: str
    index: Expr
    conditions: tuple[Expr, ...]
    element: Expr
    over: tuple[tuple[str, int], ...]

    @property
    def roots(self) -> tuple[Expr, ...]:
        """All that is computed."""
        return (self.index, *self.conditions, self.element)


def scatter_of(x: Expr, o: Output) -> Scatter | None:
    """Return how a sum in an output is scattered, if it is one over indices that are data."""
    over: list[tuple[str, int]] = []
    while x.op == "reduce" and x.value[0] == "sum":
        over.append(x.value[1:])
        x = x.args[0]
    conditions: list[Expr] = []
    while x.op == "where" and x.args[2].op == "const" and x.args[2].value == 0:
        conditions += _all_of(x.args[0])
        x = x.args[1]
    rows = [i.value[0] for i in o.indices if i.op == "index"]
    is_plain = len(rows) == sum(n > 1 for n in o.shape) and len(over) <= len(LOOPS)
    if not is_plain or not over or prod(n for _, n in over) < FEWEST_INDICES:
        return None
    summed = {name for name, _ in over}
    for c in conditions:
        for index, row in (c.args, c.args[::-1]) if c.op == "eq" else ():
            rest = tuple(other for other in conditions if other is not c)
            if (
                row.op == "index"
                and row.value[0] in rows
                and not any(row.value[0] in y.free for y in (index, x, *rest))
                and any(n.op == "load" and n.free & summed for n in walk(index))
                and (x.dtype.is_float or x.dtype.bits >= 32)
            ):
                return Scatter(row.value[0], index, rest, x, tuple(over))
    return None


def _all_of(condition: Expr) -> Iterator[Expr]:
    if condition.op == "and":
        for arg in condition.args:
            yield from _all_of(arg)
    else:
        yield condition
