"""How the iterations of a parallel loop are spread over the threads of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tile_core.ir.expr import Expr
from tile_core.layout.formulas import as_index, coordinate, evaluate, inputs, simplify
from tile_core.layout.fragment import Fragment
from tile_core.layout.mixed_radix import flatten_row_major, unflatten_row_major
from tile_core.records import dataclass

THREAD, ROUND, LANE = inputs(3)

ENOUGH = 16
"""Neighbouring elements of a row that are enough for its threads to share accesses well."""

_REMEMBERED = 256
"""Plans that are kept: layout inference asks for each of them many times."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopLayout:
    """Which thread runs each iteration of a `Parallel` nest, and in which order it does.

    A thread runs `rounds` times `vector` iterations. Iterations of one round are neighbours
    along the innermost dimension: what becomes one access of memory. Iteration ``(round,
    lane)`` of `thread` is at the point ``coords_at(thread, round, lane)``.
    """

    # Which threads run each point of the box, seen as a tile; a point that several threads run has
    # one replica for each of them. Its slots number the iterations of a thread.
    fragment: Fragment
    vector: int  # lanes of a round, a power of two
    rounds: int  # rounds of each thread
    threads: int  # how many threads take part: those with higher numbers have no iterations
    # The point, one formula per dimension over the thread, the round and the lane.
    coords: tuple[Expr, ...]
    # Which of the replicas the thread runs, over the same three; replica 0 is the one that speaks
    # for the point where an effect must happen once.
    replica: Expr
    # Whether the point may be outside of the box: then there is no such iteration.
    ragged: bool = False
    # No formula leads from threads to points: every thread visits all points, round by round, and
    # runs those it owns according to `fragment`.
    searched: bool = False

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the loop."""
        return self.fragment.shape

    @property
    def slots(self) -> int:
        """Iterations of each thread."""
        return self.rounds * self.vector

    @property
    def is_replicated(self) -> bool:
        """Whether some points are run by several threads."""
        return self.fragment.replication > 1

    @property
    def box(self) -> tuple[int, int, int]:
        """Extents of (thread, round, lane), over which `coords` and `replica` are formulas."""
        return self.threads, self.rounds, self.vector

    def coords_at(self, thread: Any, rounds: Any, lane: Any) -> tuple[Any, ...]:
        """Return the point of an iteration; arguments are integers, arrays or expressions."""
        return tuple(evaluate(e, (thread, rounds, lane)) for e in self.coords)

    def replica_at(self, thread: Any, rounds: Any, lane: Any) -> Any:
        """Return the number of the replica that the thread runs at an iteration."""
        return evaluate(self.replica, (thread, rounds, lane))


ACCESS = 2
"""What an access of memory costs, in work on elements."""


def planned(
    extents: Sequence[int],
    threads: int,
    vector: int = 1,
    *,
    least: int = 1,
    holds_tiles: bool = False,
) -> LoopLayout:
    """Return the layout of a loop that nothing else determines.

    Iterations in row-major order are cut into accesses of `vector` elements, which go round
    the threads: neighbouring threads access neighbouring memory.

    `vector`, a power of two, is the most elements of one access; fewer are taken where that leaves
    less of the last round empty, but no fewer than `least`, which must divide the number of
    iterations. With `holds_tiles`, fragments take their layout from the loop: threads are filled
    evenly if that is possible, and several run each point of a loop smaller than the block.
    """
    return _planned(tuple(extents), threads, vector, least, holds_tiles)


@lru_cache(maxsize=_REMEMBERED)
def _planned(
    box: tuple[int, ...], threads: int, vector: int, least: int, holds_tiles: bool
) -> LoopLayout:
    total = math.prod(box)
    if holds_tiles and total < threads:
        return _replicated(box, threads // total)
    v = max(least, _width(total, threads, vector))
    if holds_tiles and len(box) > 1:
        rows = _row_groups(box, threads, vector)
        if total % (threads * v):
            if not _starts_anew(box[-1], threads, v):
                return _uneven_rows(box, threads, vector)
        elif rows is not None:
            return rows
    used = min(threads, -(-total // v))
    rounds = -(-total // (used * v))
    flat = flatten_row_major(inputs(len(box)), box)
    slot = flat // (v * used) * v + flat % v
    fragment = Fragment(box, None, flat // v % used, 1, (slot,), used)
    domain = (used, rounds, v)
    coords = _unflattened((ROUND * used + THREAD) * v + LANE, box, domain)
    ragged = used * rounds * v != total
    return LoopLayout(fragment, v, rounds, used, coords, as_index(0), ragged)


def _replicated(box: tuple[int, ...], copies: int) -> LoopLayout:
    """Return the layout of a loop of which each point is run by `copies` threads, once."""
    total = math.prod(box)
    flat = flatten_row_major(inputs(len(box)), box)
    thread = flat + coordinate(len(box)) * total if copies > 1 else flat
    fragment = Fragment(box, None, thread, copies, (as_index(0),), total * copies)
    domain = (total * copies, 1, 1)
    coords = _unflattened(simplify(THREAD % total, domain), box, domain)
    replica = simplify(THREAD // total, domain)
    return LoopLayout(fragment, 1, 1, total * copies, coords, replica)


def _row_groups(box: tuple[int, ...], threads: int, vector: int) -> LoopLayout | None:
    """Return a layout with the same number of threads in each row, None if none is needed.

    Dealt out one after the other, accesses start anew in each row only if the accesses of a
    row and the threads divide one another. Otherwise rows get as many threads as divide both,
    each of which goes through its row in steps: tiles made so can be reduced along rows.
    """
    cols, rows = box[-1], math.prod(box[:-1])
    widths = [1 << k for k in reversed(range(vector.bit_length())) if cols % (1 << k) == 0]
    steps = cols // widths[0]
    if steps % threads == 0 or threads % steps == 0:
        return None
    v = max(widths, key=lambda w: (min(math.gcd(cols // w, threads) * w, ENOUGH), w))
    lanes = math.gcd(cols // v, threads)
    groups = threads // lanes
    return None if rows % groups else _in_steps(box, v, lanes, groups, ragged=False)


def _in_steps(box: tuple[int, ...], v: int, lanes: int, groups: int, *, ragged: bool) -> LoopLayout:
    """Return the layout in which `groups` of `lanes` threads go through a row each in steps."""
    cols, rows = box[-1], math.prod(box[:-1])
    turns = -(-cols // (v * lanes))
    row = flatten_row_major(inputs(len(box) - 1), box[:-1])
    col = coordinate(len(box) - 1)
    slot = (row // groups * turns + col // (v * lanes)) * v + col % v
    used = groups * lanes
    fragment = Fragment(box, None, row % groups * lanes + col // v % lanes, 1, (slot,), used)
    domain = (used, -(-rows // groups) * turns, v)
    place = (ROUND % turns * lanes + THREAD % lanes) * v + LANE
    at = _unflattened(ROUND // turns * groups + THREAD // lanes, box[:-1], domain)
    coords = (*at, simplify(place, domain))
    return LoopLayout(fragment, v, domain[1], used, coords, as_index(0), ragged)


def _starts_anew(cols: int, threads: int, vector: int) -> bool:
    """Whether accesses dealt out one after the other begin each row with the same thread."""
    steps = cols // vector
    return cols % vector == 0 and (steps % threads == 0 or threads % steps == 0)


def _uneven_rows(box: tuple[int, ...], threads: int, vector: int) -> LoopLayout:
    """Return a layout in which a power of two of threads goes through each row in steps.

    Each of them has a part of each of its rows, though at the end of a row not all of them have
    as much: tiles made so can be reduced along rows. Among those layouts in which neighbouring
    threads share accesses well, that with the fewest accesses is taken, then that with the fewest
    registers, then that with the fewest threads to a row, which may be lanes of one warp.
    """
    cols, rows = box[-1], math.prod(box[:-1])
    ways = [
        (1 << a, 1 << b)
        for a in range(vector.bit_length())
        for b in range(threads.bit_length())
        if cols % (1 << a) == 0 and threads % (1 << b) == 0 and 1 << a + b <= cols
    ]

    def cost(way: tuple[int, int]) -> tuple[int, ...]:
        v, lanes = way
        accesses = -(-rows // (threads // lanes)) * -(-cols // (v * lanes))
        return -min(v * lanes, ENOUGH), accesses, accesses * v, lanes

    v, lanes = min(ways, key=cost)
    return _in_steps(box, v, lanes, min(threads // lanes, rows), ragged=True)


def _width(total: int, threads: int, vector: int) -> int:
    """Return the elements of an access, `vector` or a half, a quarter, … of it: at least cost."""
    widths = [1 << k for k in reversed(range(vector.bit_length()))]
    return min(widths, key=lambda v: -(-total // (threads * v)) * (v + ACCESS))


def _unflattened(
    flat: Expr, box: tuple[int, ...], domain: tuple[int, int, int]
) -> tuple[Expr, ...]:
    """Return the coordinates of a row-major position; the first goes on past its extent."""
    if not box:
        return ()
    rest = unflatten_row_major(flat, box)[1:]
    outer = flat // math.prod(box[1:])
    return tuple(simplify(e, domain) for e in (outer, *rest))
