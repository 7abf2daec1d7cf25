"""Gradients of what windows read in steps: elements of each remainder are apart.

In steps of 2, even elements are met by other taps of a window than odd ones: together they would
be sums over all taps, most of them masked. Apart each is a sum over its own taps, read without
gaps, as in steps of 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.expressions import Expr, Indices, const, integer_part, make
from tile_api.arrays.equations.substitution import substituted, unused
from tile_api.arrays.gradients.index_maps import step_of

MOST_REMAINDERS = 9
"""Sums that are worthwhile to have apart: those of steps of 3 in both directions."""


def by_remainders(
    indices: Indices, reads: Sequence[Indices], found: Callable[[Indices], Expr]
) -> Expr:
    """Return an element of a gradient, by remainders where windows read it in steps.

    Parameters
    ----------
    reads
        The indices that it is read at; none if all elements are to be found together.
    found
        Returns the elements with given indices.
    """
    steps = [_step(i, [at[k] for at in reads]) for k, i in enumerate(indices)]
    if math.prod(steps) == 1 or math.prod(steps) > MOST_REMAINDERS:
        return found(indices)
    taken = frozenset().union(*(i.free for at in (indices, *reads) for i in at))
    return _apart(0, indices, steps, taken, found)


def _step(i: Expr, reads: Sequence[Expr]) -> int:
    step = step_of(reads) if reads and i.op == "index" else 1
    return step if step > 1 and i.value[1] % step == 0 else 1


def _apart(
    axis: int,
    indices: Indices,
    steps: Sequence[int],
    taken: frozenset[str],
    found: Callable[[Indices], Expr],
) -> Expr:
    """Return elements by their remainders along an axis and those after it."""
    if axis == len(indices):
        return found(indices)
    step, whole = steps[axis], indices[axis]
    if step == 1:
        return _apart(axis + 1, indices, steps, taken, found)
    size = whole.value[1] // step
    name = unused(variable_of(size, frozenset()), taken)
    made: Expr | None = None
    for k in reversed(range(step)):
        at = eq.add(eq.multiply(const(step), eq.index(name, size)), const(k))
        mine = (*indices[:axis], at, *indices[axis + 1 :])
        part = _apart(axis + 1, mine, steps, taken | {name}, found)
        part = substituted(part, {name: integer_part("floordiv", whole, const(step))})
        is_mine = make("eq", integer_part("mod", whole, const(step)), const(k))
        made = part if made is None else eq.where(is_mine, part, made)
    assert made is not None
    return made
