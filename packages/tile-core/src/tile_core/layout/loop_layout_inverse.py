"""From who runs the points of a loop to what each thread runs."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.expr import Expr
from tile_core.layout.formulas import (
    as_index,
    axis_of,
    coordinate,
    evaluate,
    inputs_of,
    linear_form,
    simplify,
)
from tile_core.layout.fragment import Fragment
from tile_core.layout.index_tables import box_coords
from tile_core.layout.loop_layout import LANE, ROUND, LoopLayout
from tile_core.layout.mixed_radix import invert, substitute, unflatten_row_major


def loop_over(fragment: Fragment, vector: int = 1) -> LoopLayout:
    """Return the loop whose points are run by the threads of `fragment`.

    Its slots number the iterations of a thread. `vector`, a power of two, is the most lanes of a
    round; fewer are taken if iterations that follow each other are not neighbours along the
    innermost dimension.

    A fragment that no formula leads back from gives a loop that is `searched`.
    """
    return _loop_over(fragment, vector)


@lru_cache(maxsize=256)
def _loop_over(fragment: Fragment, vector: int) -> LoopLayout:
    found = _inverse(fragment)
    if found is None:
        return _searched(fragment)
    coords, replica, ragged = found
    threads, slots = fragment.thread_extent, fragment.slots
    width = math.gcd(slots, vector)
    while True:
        box = (threads, slots // width, width)
        slot = ROUND * width + LANE
        at = tuple(_substituted(e, slot, box) for e in coords)
        if width == 1 or _lanes_are_neighbours(at, _substituted(replica, slot, box), box):
            rep = _substituted(replica, slot, box)
            return LoopLayout(fragment, width, box[1], threads, at, rep, ragged)
        width //= 2


def _substituted(expr: Expr, slot: Expr, box: tuple[int, int, int]) -> Expr:
    return substitute(expr, (coordinate(0), slot), box)


def _lanes_are_neighbours(
    coords: tuple[Expr, ...], replica: Expr, box: tuple[int, int, int]
) -> bool:
    """Whether the lane is a step of 1 along the last coordinate, and moves nothing else."""
    if not coords or any(axis_of(LANE) in inputs_of(e) for e in (*coords[:-1], replica)):
        return False
    rest = linear_form(coords[-1] - LANE, box)
    return all(axis_of(LANE) not in inputs_of(atom.expr) for atom, _ in rest.terms)


def _inverse(fragment: Fragment) -> tuple[tuple[Expr, ...], Expr, bool] | None:
    """Return point and replica over (thread, slot), and whether some points do not exist."""
    if not fragment.shape:
        return ((), coordinate(0), False) if fragment.replication > 1 else ((), as_index(0), False)
    target = (fragment.thread_extent, fragment.slots)
    room = math.prod(target)
    points = fragment.size * fragment.replication
    if points > room:
        return None
    box = (*fragment.shape, fragment.replication)
    if points == room:
        found = _solved(fragment, box)
        return None if found is None else (found[:-1], found[-1], False)
    for axis in range(fragment.rank):  # some dimension is cut off before its last digit ends
        wide = list(box)
        wide[axis] = -(-room * box[axis] // points)
        found = _solved(fragment, tuple(wide))
        if found is not None and _is_exact(fragment, found[:-1], found[-1], target):
            return found[:-1], found[-1], True
    return None


def _solved(fragment: Fragment, extents: tuple[int, ...]) -> tuple[Expr, ...] | None:
    """Return the point and the replica as formulas over thread and slot."""
    outputs = [fragment.thread, fragment.slot_expr()]
    try:
        return invert(outputs, extents, (fragment.thread_extent, fragment.slots))
    except LayoutError:
        return None


def _is_exact(
    fragment: Fragment, coords: tuple[Expr, ...], replica: Expr, target: tuple[int, int]
) -> bool:
    """Whether the points found inside of the box are those the threads hold, each once."""
    at = [np.broadcast_to(evaluate(e, box_coords(target)), target) for e in (*coords, replica)]
    box = (*fragment.shape, fragment.replication)
    inside = np.ones(target, dtype=bool)
    for x, extent in zip(at, box, strict=True):
        inside &= (x >= 0) & (x < extent)
    if int(inside.sum()) != math.prod(box):
        return False
    thread, slot = np.nonzero(inside)
    places = tuple(x[inside] for x in at)
    held = np.array_equal(fragment.thread_table()[places], thread)
    return held and np.array_equal(fragment.slot_table()[places[:-1]], slot)


def loop_through(
    held: LoopLayout, fragment: Fragment, moves: tuple[tuple[int, int] | None, ...], vector: int
) -> LoopLayout:
    """Return the loop `fragment` over a part of a tile whose own loop is `held`.

    `moves` is, for each dimension of the tile, the dimension of the loop that moves along it and
    where it starts; None for a dimension of extent 1. `vector` is the most lanes of a round.
    """
    width = math.gcd(held.vector, vector, *(start for _, start in filter(None, moves)))
    box = (held.threads, held.slots // width, width)
    slot = ROUND * width + LANE
    point = (coordinate(0), slot // held.vector, slot % held.vector)
    coords: list[Expr] = [as_index(0)] * len(fragment.shape)
    for axis, move in enumerate(moves):
        if move is not None:
            coords[move[0]] = substitute(held.coords[axis] - move[1], point, box)
    replica = substitute(held.replica, point, box)
    at = tuple(coords)
    if width > 1 and not _lanes_are_neighbours(at, replica, box):
        return loop_through(held, fragment, moves, width // 2)
    indices = [as_index(0) if m is None else coordinate(m[0]) + m[1] for m in moves]
    shape, threads = fragment.shape, fragment.thread_extent
    slot = substitute(held.fragment.slot_expr(), indices, shape)
    numbered = Fragment(shape, None, fragment.thread, fragment.replication, [slot], threads)
    return LoopLayout(numbered, width, box[1], held.threads, at, replica, ragged=True)


def _searched(fragment: Fragment) -> LoopLayout:
    """Return the loop in which every thread looks at every point."""
    box = (fragment.thread_extent, fragment.size, 1)
    coords = tuple(simplify(e, box) for e in unflatten_row_major(ROUND, fragment.shape))
    threads, points, _ = box
    return LoopLayout(fragment, 1, points, threads, coords, as_index(0), searched=True)
