"""Fragments seen through index maps: loops from tiles, tiles from loops, reduced tiles.

A loop runs ``tile[index(x)]`` at each point x. If it is known who holds the tile, it follows
who can run the loop (`pulled_back`); if it is known who runs the loop, it follows who must
hold the tile (`pushed_forward`), where elements that many points use are held by many threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.expr import Expr, Var
from tile_core.layout.box import normal_axis
from tile_core.layout.formulas import as_index, axis_of, coordinate, inputs, inputs_of, simplify
from tile_core.layout.fragment import Fragment
from tile_core.layout.index_tables import has_duplicates, tabulate
from tile_core.layout.mixed_radix import (
    Digit,
    digit_expr,
    digits_in,
    flatten_row_major,
    invert,
    leftover,
    substitute,
    unflatten_row_major,
)
from tile_core.layout.replicas import condensed

_REMEMBERED = 256
"""Reduced tiles that are kept: layout inference asks for each of them many times."""


def pulled_back(held: Fragment, indices: Sequence[Expr], box: Sequence[int]) -> Fragment:
    """Return the loop over `box` in which the holders of ``tile[indices(x)]`` run point x.

    `indices` is the index map: one formula per dimension of the tile, over coordinates of `box`.

    ``result.owners(*x) == held.owners(*indices(x))`` for every point. The slots number the
    iterations of a thread in row-major order of the points, if they can be told apart so.
    """
    rank = len(box)
    domain = (*box, held.replication)
    thread = substitute(held.thread, (*indices, coordinate(rank)), domain)
    thread, copies = condensed(thread, domain)
    slot = substitute(held.slot_expr(), indices, box)
    return _with_slots(tuple(box), thread, copies, held.thread_extent, [slot])


def shared_out(
    held: Fragment, indices: Sequence[Expr], box: Sequence[int], vector: int
) -> Fragment | None:
    """Return the loop of which the replicas of a tile's elements run different points.

    The index map leaves some coordinates of `box` alone: along these the points that use one
    element are dealt out to its holders, in pieces of `vector` points. Each point is run by one
    thread, which holds the element used. None if the index map uses every coordinate.
    """
    used = frozenset(axis for e in indices for axis in inputs_of(e))
    free = [axis for axis, extent in enumerate(box) if axis not in used and extent > 1]
    count = math.prod(box[axis] for axis in free)
    if not free:
        return None
    width = math.gcd(vector, box[free[-1]])
    while width > 1 and count % (width * held.replication):
        width //= 2
    number = flatten_row_major([coordinate(axis) for axis in free], [box[axis] for axis in free])
    copy = number // width % held.replication
    thread = substitute(held.thread, (*indices, copy), box)
    slot = substitute(held.slot_expr(), indices, box)
    return _with_slots(tuple(box), thread, 1, held.thread_extent, [slot * count + number])


def pushed_forward(
    run: Fragment, indices: Sequence[Expr], shape: Sequence[int], serial: Sequence[int] = ()
) -> Fragment:
    """Return the tile of which each thread holds what its points of the loop `run` use.

    `indices` is the index map: one formula per dimension of the tile, which has extents `shape`,
    over the coordinates of the loop and then those of sequential loops of extents `serial` inside
    of it.

    Raises `LayoutError` if the map does not take the coordinates apart digit by digit.

    ``result.owners(*b)`` is the union of ``run.owners(*x)`` over all points x with
    ``indices(x) == b``. Elements that no point uses continue the pattern of the others.
    """
    extents = (*run.shape, *serial)
    rest = _unused(indices, extents)
    outputs = [*indices, *(digit_expr(d) for d in rest)]
    target = (*shape, *(d.extent for d in rest))
    inverse = invert(outputs, extents, target)
    spread = tuple(d.extent for d in rest)
    domain = (*shape, math.prod(spread) * run.replication)
    rep = coordinate(len(shape))
    *places, copy = unflatten_row_major(rep, (*spread, run.replication))
    coords = [substitute(e, (*inputs(len(shape)), *places), domain) for e in inverse]
    thread = substitute(run.thread, (*coords[: run.rank], copy), domain)
    thread, copies = _told_apart(*condensed(thread, domain), shape)
    thread = _renumbered(thread, copies, run.thread_extent, rep)
    slots = []
    if not any(len(shape) in inputs_of(e) for e in coords[: run.rank]):
        slots = [substitute(run.slot_expr(), coords[: run.rank], shape)]
    return _with_slots(tuple(shape), thread, copies, run.thread_extent, slots)


@lru_cache(maxsize=_REMEMBERED)
def reduced_fragment(held: Fragment, dim: int, keepdim: bool = False) -> Fragment:
    """Return who holds the result of reducing a tile along `dim`: all that hold a part of it.

    The dimension disappears, or stays with extent 1 if `keepdim`.

    ``result.owners(*b)`` is the union of ``held.owners(*x)`` over the row x of b: the reduced
    dimension becomes replication, of which only the parts that the thread depends on remain.
    A tile of one dimension reduces to shape (1,).
    """
    dim = normal_axis(dim, held.rank)
    kept: list[Expr] = [coordinate(k) for k in range(held.rank) if k != dim]
    shape = [held.shape[k] for k in range(held.rank) if k != dim]
    if keepdim:
        kept.insert(dim, as_index(0))
        shape.insert(dim, 1)
    if not kept:
        kept, shape = [as_index(0)], [1]
    return pushed_forward(held, kept, shape)


def _told_apart(thread: Expr, copies: int, shape: Sequence[int]) -> tuple[Expr, int]:
    """Leave out replicas in threads that hold the element already.

    Rows that are cut off in the middle of a step have them: replicas at a regular distance,
    the first ones, are tried in place of all.
    """
    owners = np.sort(tabulate(thread, (*shape, copies)).reshape(-1, copies), axis=1)
    count = np.unique(owners[0]).size
    rep = coordinate(len(shape))
    step = 1
    while count < copies and step < copies and (count - 1) * step < copies:
        domain = (*shape, count)
        fewer = substitute(thread, (*inputs(len(shape)), rep * step), domain)
        found = np.sort(tabulate(fewer, domain).reshape(-1, count), axis=1)
        if not (np.diff(found, axis=1) == 0).any() and all(
            np.array_equal(a, np.unique(b)) for a, b in zip(found, owners, strict=True)
        ):
            return fewer, count
        step *= 2
    return thread, copies


def _renumbered(thread: Expr, copies: int, threads: int, rep: Var) -> Expr:
    """Return the thread, with the replicas of what every thread holds numbered by thread."""
    if copies != threads or copies == 1 or inputs_of(thread) != {axis_of(rep)}:
        return thread
    numbers = tabulate(thread, (*(1 for _ in range(axis_of(rep))), copies))
    return thread if has_duplicates(numbers) else rep


def _unused(indices: Sequence[Expr], extents: Sequence[int]) -> list[Digit]:
    """Return the digits of the coordinates that the index map does not depend on."""
    used = [digit for e in indices for digit in digits_in(e, extents)]
    sums = {axis for d in used if not isinstance(d.source, Var) for axis in inputs_of(d.source)}
    rest: list[Digit] = []
    for axis, extent in enumerate(extents):
        if axis in sums:
            continue
        rest += reversed(leftover(used, coordinate(axis), extent))
    return [d for d in rest if d.extent > 1]


def _with_slots(
    shape: tuple[int, ...], thread: Expr, copies: int, threads: int, given: list[Expr]
) -> Fragment:
    """Return the fragment with the fewest registers that can be found.

    Tried in turn: the digits that the thread leaves over, the slots `given`, and a register
    for every element.
    """
    try:
        return Fragment(shape, forward_thread_fn=thread, replicate=copies, threads=threads)
    except LayoutError:
        pass
    for slots in given:
        made = Fragment(shape, None, thread, copies, [slots], threads)
        if made.is_injective():
            return made
    every = simplify(flatten_row_major(inputs(len(shape)), shape), shape)
    return Fragment(shape, None, thread, copies, [every], threads)
