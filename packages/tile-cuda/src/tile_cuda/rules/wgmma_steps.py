"""Steps of a product that one statement takes, and how operands move from each to the next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tile_cuda.rules.wgmma_operands import SharedFactor
from tile_cuda.wgmma_shapes import MOST_STEPS


def steps_at_once(steps: int, depth: int, factors: Sequence[SharedFactor]) -> int:
    """Return how many of the `steps` of a product one statement takes: a power of two.

    Parameters
    ----------
    depth
        Elements along K that a step multiplies.
    factors
        Those in shared memory, which must move alike in all statements.
    """
    count = MOST_STEPS
    while count > 1 and (steps % count or not _are_alike(steps, depth, count, factors)):
        count //= 2
    return count


def moves_between(factor: SharedFactor, depth: int, count: int) -> tuple[int, ...]:
    """Return how a factor moves within the `count` steps of a statement, in units of 16 bytes.

    Returns
    -------
    Nothing for one step; the way from each step to the next if all are alike; else this way,
    how many steps are side by side, and the way from the first of these to the next such.
    """
    if count == 1:
        return ()
    first = factor.first_steps[0]
    places = [_unit_of(factor, first + depth * step) for step in range(count)]
    near = places[1] - places[0]
    side_by_side = next((k for k, (a, b) in enumerate(pairwise(places), 1) if b - a != near), None)
    if side_by_side is None:
        return (near,)
    return near, side_by_side, places[side_by_side] - places[0]


def _unit_of(factor: SharedFactor, k: int) -> int:
    """Return where a factor's elements from step `k` of its buffer on begin."""
    place: int = factor.tile.units(0, k, is_k_last=factor.is_k_last)
    return place


def _are_alike(steps: int, depth: int, count: int, factors: Sequence[SharedFactor]) -> bool:
    """Whether all statements of `count` steps find their factors by the same moves.

    Wherever in a box a factor begins, if that varies.
    """
    for factor in factors:
        near, *far = moves_between(factor, depth, count)
        side_by_side, jump = far or (count, 0)
        for first in factor.first_steps:
            for step in range(steps):
                place = _unit_of(factor, first + depth * (step - step % count))
                inside = step % count
                place += inside % side_by_side * near + inside // side_by_side * jump
                if place != _unit_of(factor, first + depth * step):
                    return False
    return True
