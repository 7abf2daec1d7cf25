"""Questions about loops and the tiles they touch, each answered once."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any, TypeVar, cast

import numpy as np

from tile_core.errors import LayoutError
from tile_core.ir.expr import Expr, Var
from tile_core.layout import Fragment
from tile_core.layout.formula_bounds import reach
from tile_core.layout.formulas import (
    as_index,
    axis_of,
    coordinate,
    digest,
    evaluate,
    inputs,
    linear_form,
    same_expr,
)
from tile_core.layout.fragment import fully_replicated
from tile_core.layout.index_tables import Table, box_coords
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.layout.loop_layout_inverse import loop_over, loop_through
from tile_core.layout.mixed_radix import row_major_position, substitute
from tile_core.layout.preimages import pulled_back, pushed_forward, shared_out
from tile_core.records import dataclass

Value = TypeVar("Value")

IndexMap = Sequence[Expr]

_NONE_YET = object()

MOST_SERIAL = 64
"""No access has more sequential coordinates than that."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A thread that runs a point of a loop without holding an element, or the other way.

    If it `holds` the element of the tile, it does not run the point that changes it.
    """

    element: tuple[int, ...]
    thread: int
    holds: bool


@dataclass(slots=True)
class Algebra:
    """Fragments seen through index maps, for one kernel.

    The inverse of loops that were `made` is known from their making, by their fragment.
    """

    made: dict[Fragment, LoopLayout] = field(default_factory=dict)
    answers: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what was answered before, else what `make` gives."""
        found = self.answers.get(key, _NONE_YET)
        if found is _NONE_YET:
            found = self.answers[key] = make()
        return cast("Value", found)

    def plan(self, extents: tuple[int, ...], threads: int, vector: int) -> LoopLayout:
        """Return the layout of a loop over tiles that nothing else determines."""

        def make() -> LoopLayout:
            loop = planned(extents, threads, vector, holds_tiles=True)
            self.made.setdefault(loop.fragment, loop)
            return loop

        return self.once(("plan", extents, threads, vector), make)

    def everyone(self, extents: tuple[int, ...], threads: int) -> Fragment:
        """Return the tile that all threads hold, or the loop that all of them run."""
        return self.once(("all", extents, threads), lambda: fully_replicated(extents, threads))

    def pull(self, held: Fragment, indices: IndexMap, extents: tuple[int, ...]) -> Fragment | None:
        """Return the loop that the holders of a tile run; None if there is no formula."""
        if held in self.made and _is_identity(indices, held.shape, extents):
            return held

        def make() -> Fragment | None:
            point = [*inputs(len(extents)), *(as_index(0) for _ in range(MOST_SERIAL))]
            return pulled_back(held, [as_index(evaluate(e, point)) for e in indices], extents)

        return self._formula(("pull", held, _digests(indices), extents), make)

    def _formula(self, key: Hashable, make: Callable[[], Fragment | None]) -> Fragment | None:
        def tried() -> Fragment | None:
            try:
                return make()
            except LayoutError:
                return None

        return self.once(key, tried)

    def share_out(
        self, held: Fragment, indices: IndexMap, extents: tuple[int, ...], vector: int
    ) -> Fragment | None:
        """Return the loop of which the holders of one element run different points."""
        key = ("share", held, _digests(indices), extents, vector)
        return self._formula(key, lambda: shared_out(held, indices, extents, vector))

    def push(
        self, run: Fragment, indices: IndexMap, shape: tuple[int, ...], serial: tuple[int, ...]
    ) -> Fragment | None:
        """Return who must hold a tile that a loop touches; None if there is no formula."""
        if not serial and _is_identity(indices, shape, run.shape):
            return run
        key = ("push", run, _digests(indices), shape, serial)
        return self._formula(key, lambda: pushed_forward(run, indices, shape, serial))

    def inverse(self, run: Fragment, vector: int) -> LoopLayout:
        """Return what each thread runs of a loop."""
        if run in self.made:
            return narrowed(self.made[run], vector)
        return self.once(("inverse", run, vector), lambda: loop_over(run, vector))

    def through(
        self, held: Fragment, run: Fragment, indices: IndexMap, vector: int
    ) -> LoopLayout | None:
        """Return the loop `run` over a part of a tile, from the loop over all of it."""
        moves = _moves(indices, held.shape, run.shape)
        if moves is None:
            return None
        whole = self.inverse(held, vector)
        return None if whole.searched else loop_through(whole, run, moves, vector)

    def misfit(
        self,
        run: Fragment,
        held: Fragment,
        indices: IndexMap,
        serial: tuple[int, ...],
        *,
        writes: bool,
    ) -> Misfit | None:
        """Return why a loop cannot touch a tile; None if it can.

        A thread must hold what it touches, and an element that changes must change wherever
        it is held.
        """

        def make() -> Misfit | None:
            if held.replication == run.replication and held.thread_extent >= run.thread_extent:
                rank = run.rank
                coords = [*inputs(rank), *(coordinate(rank + 1 + k) for k in range(len(serial)))]
                point = [as_index(evaluate(e, coords)) for e in indices]
                domain = (*run.shape, run.replication, *serial)
                if _is_inside(point, held.shape, domain):
                    thread = substitute(held.thread, (*point, coordinate(rank)), domain)
                    if same_expr(thread, run.thread):
                        return None
            return _first_misfit(run, held, indices, serial, self.owners(held, run), writes=writes)

        return self.once(("misfit", run, held, _digests(indices), serial, writes), make)

    def owners(self, held: Fragment, run: Fragment) -> Table:
        """Return who holds each element: truth values, elements by threads."""
        threads = max(held.thread_extent, run.thread_extent)

        def make() -> Table:
            table = np.zeros((held.size, threads), dtype=bool)
            elements = np.arange(held.size).reshape(*held.shape, 1)
            table[elements, held.thread_table()] = True
            return table

        return self.once(("owners", held, threads), make)


def _digests(indices: IndexMap) -> tuple[int, ...]:
    return tuple(digest(e) for e in indices)


def _is_identity(indices: IndexMap, shape: tuple[int, ...], extents: tuple[int, ...]) -> bool:
    return shape == extents and all(
        (isinstance(e, Var) and axis_of(e) == axis) or extents[axis] == 1
        for axis, e in enumerate(indices)
    )


def _is_inside(point: Sequence[Expr], shape: tuple[int, ...], domain: Sequence[int]) -> bool:
    bounds = [reach(e, domain) for e in point]
    return all(r.lo >= 0 and r.hi < n for r, n in zip(bounds, shape, strict=True))


def _moves(
    indices: IndexMap, shape: tuple[int, ...], extents: tuple[int, ...]
) -> tuple[tuple[int, int] | None, ...] | None:
    """Return which coordinate of the loop moves along each dimension, and from where on."""
    found: list[tuple[int, int] | None] = []
    for index, room in zip(indices, shape, strict=True):
        if room == 1:
            found.append(None)
            continue
        value = linear_form(index, (*extents, *(1 for _ in range(MOST_SERIAL))))
        if len(value.terms) != 1 or value.terms[0][1] != 1 or value.constant < 0:
            return None
        term = value.terms[0][0].expr
        if not isinstance(term, Var):
            return None
        found.append((axis_of(term), value.constant))
    axes = sorted(move[0] for move in found if move is not None)
    needed = [axis for axis, extent in enumerate(extents) if extent > 1]
    return tuple(found) if axes == needed else None


def _first_misfit(
    run: Fragment,
    held: Fragment,
    indices: IndexMap,
    serial: tuple[int, ...],
    owners: Table,
    *,
    writes: bool,
) -> Misfit | None:
    """Compare both, element by element, and return the first difference."""
    box = (*run.shape, *serial)
    at = [np.broadcast_to(evaluate(e, box_coords(box)), box) for e in indices]
    valid = np.ones(box, dtype=bool)
    for x, extent in zip(at, held.shape, strict=True):
        valid &= (x >= 0) & (x < extent)
    element = np.where(valid, row_major_position(at, held.shape), 0)
    threads = run.thread_table().reshape(*run.shape, *(1 for _ in serial), run.replication)
    threads = np.broadcast_to(threads, (*box, run.replication))
    missing = ~owners[element[..., None], threads] & valid[..., None]
    if missing.any():
        worst = np.where(missing, element[..., None] * owners.shape[1] + threads, owners.size)
        return _at(int(worst.min()), held.shape, owners.shape[1], holds=False)
    if not writes:
        return None
    points = math.prod(box)
    running = np.zeros((points, owners.shape[1]), dtype=bool)
    running[np.arange(points)[:, None], threads.reshape(points, -1)] = True
    idle = owners[element.reshape(-1)] & ~running & valid.reshape(-1, 1)
    if not idle.any():
        return None
    places = element.reshape(-1, 1) * owners.shape[1] + np.arange(owners.shape[1])
    return _at(int(places[idle].min()), held.shape, owners.shape[1], holds=True)


def _at(place: int, shape: tuple[int, ...], threads: int, *, holds: bool) -> Misfit:
    element, thread = divmod(place, threads)
    where = np.unravel_index(element, shape) if shape else ()
    return Misfit(tuple(int(x) for x in where), thread, holds)


def narrowed(loop: LoopLayout, vector: int) -> LoopLayout:
    """Return `loop` with accesses of at most `vector` lanes, in the same order."""
    width = math.gcd(loop.vector, vector)
    if width == loop.vector:
        return loop
    ratio = loop.vector // width
    box = (loop.threads, loop.rounds * ratio, width)
    point = (coordinate(0), coordinate(1) // ratio, coordinate(1) % ratio * width + coordinate(2))
    return LoopLayout(
        loop.fragment, width, box[1], loop.threads,
        tuple(substitute(e, point, box) for e in loop.coords),
        substitute(loop.replica, point, box), loop.ragged, loop.searched,
    )  # fmt: skip
