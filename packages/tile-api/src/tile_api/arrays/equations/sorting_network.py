"""Batcher's bitonic network: recurrences whose steps sort what they start from.

A step compares each element with another one, and keeps the lesser of the two at the lower place:
``log2(n) * (log2(n) + 1) / 2`` steps, whatever the elements are. (K. E. Batcher, Sorting networks
and their applications, AFIPS 1968.)
"""

from __future__ import annotations

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import INDEX, Expr, const, make
from tile_api.arrays.equations.recurrence import Recurrence


def sorting_steps(of: Recurrence, axis: int = 0) -> tuple[Expr, ...]:
    """Return what becomes of integers in a step of the network.

    Parameters
    ----------
    of
        What it carries are the elements: one integer for each, or several, of which the first ones
        are compared first.
    axis
        The dimension of what is carried that is sorted.
    """
    indices = of.indices(0)
    place, (_, size) = indices[axis], of.carried[0][axis]
    partner = _partner(of.step, place, size)
    one, other = (
        tuple(
            make("carry", *indices[:axis], at, *indices[axis + 1 :],
                 value=(of.token, k), dtype=INDEX)
            for k in range(len(of.carried))
        )
        for at in (place, partner)
    )  # fmt: skip
    is_lesser = make("lt", place, partner)
    if len(one) == 1:
        least, most = (make(op, *one, *other) for op in ("minimum", "maximum"))
        return (eq.where(is_lesser, least, most),)
    is_kept = make("eq", is_before(one, other), is_lesser)
    return tuple(eq.where(is_kept, *pair) for pair in zip(one, other, strict=True))


def is_before(one: tuple[Expr, ...], other: tuple[Expr, ...]) -> Expr:
    """Tell whether an element comes before another one, which are compared value by value."""
    if len(one) == 1:
        return make("lt", *one, *other)
    same = make("eq", one[0], other[0])
    return make("or", make("lt", one[0], other[0]), make("and", same, make("lt", one[1], other[1])))


def steps_of_network(size: int) -> int:
    """Return how many steps sort elements.

    Examples
    --------
    >>> steps_of_network(8), steps_of_network(9)
    (6, 10)
    """
    levels = (size - 1).bit_length()
    return levels * (levels + 1) // 2


def _partner(step: Expr, place: Expr, size: int) -> Expr:
    """Return what an element is compared with in a step; itself, if there is none.

    Level n merges runs of ``2 ** n`` elements in pairs, in n + 1 steps. The first compares each
    element of a run with the one that lies as far from the end of the other one; the next ones are
    at distances from half a run down to 1. Elements beyond the end would be the greatest ones: no
    step would move them.
    """
    level: Expr = const(0)
    begun: Expr = const(0)
    for n in range(1, (size - 1).bit_length()):
        is_on = make("le", const(n * (n + 1) // 2), step)
        level = eq.add(level, eq.cast(is_on, INDEX))
        begun = eq.where(is_on, const(n * (n + 1) // 2), begun)
    distance = make("shl", const(1), eq.subtract(eq.add(level, begun), step))
    crossed = eq.add(const(-1), make("shl", const(2), level))
    partner = make("bitxor", place, eq.where(make("eq", step, begun), crossed, distance))
    if not size & (size - 1):
        return partner
    return eq.where(make("lt", partner, const(size)), partner, place)
