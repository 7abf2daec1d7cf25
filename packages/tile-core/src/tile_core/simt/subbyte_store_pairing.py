"""Which stores of elements that share a byte are those of a thread that stores both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import as_expr
from tile_core.ir.effects import storages_written
from tile_core.ir.expr import Call, Expr, Load, Var
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, contains, nodes_of, substitute, walk
from tile_core.ir.stmt import Break, Continue, For, Leaf, Let, OnThreads, Parallel, Stmt, Store
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.records import dataclass, replace
from tile_core.simt.lane_strides import Lanes, along, is_steady
from tile_core.simt.subbyte_access import is_packed


@dataclass(frozen=True, slots=True)
class PairedIterations:
    """Iterations that one thread runs, two neighbours of which are ``2*pair`` and ``2*pair + 1``.

    `lane` counts the iterations from 0 on, `of_pair` is its value for the lanes 0 and 1 of
    `two`. Loads of what the iterations write may give another value to each of them.
    """

    lane: Var
    of_pair: Expr
    two: Lanes
    written: frozenset[Buffer]

    def is_shared(self, value: Expr) -> bool:
        """Whether `value`, a number, is the same for both neighbours."""
        moved = self._in_pair(value)
        found = None if moved is None else along(moved, self.two)
        return found is not None and found.factor == 0

    def holds_for_both(self, condition: Expr) -> bool:
        """Whether `condition` has one value for both neighbours."""
        moved = self._in_pair(condition)
        return moved is not None and is_steady(moved, self.two)

    def is_whole(self, offset: Expr) -> bool:
        """Whether the elements at `offset` of two neighbours fill a byte."""
        moved = self._in_pair(offset)
        found = None if moved is None else along(moved, self.two)
        if found is None or found.factor != 1:
            return False
        return self.two.env.multiple_of(found.base) % 2 == 0

    def _in_pair(self, value: Expr) -> Expr | None:
        """Return `value` in terms of the pair; None if it may change otherwise."""
        for node in walk(value):
            if isinstance(node, Load) and node.buffer.storage in self.written:
                return None
            if isinstance(node, Call) and effect_of(node.function) is not Effect.NONE:
                return None
        return substitute(value, {self.lane: self.of_pair})


@dataclass(frozen=True, slots=True)
class Runs:
    """What is known at a place of a program about the neighbours that a thread runs there.

    `all` are the loops around the place in which both neighbours of a pair get there; `points`
    has the variables of a parallel loop in terms of the thread and its lanes, and `env` what is
    known about the integers that they mention. Two neighbours may not share the values of names
    in `moving`.
    """

    all: tuple[PairedIterations, ...] = ()
    points: dict[Node, Node] = field(default_factory=dict)
    moving: frozenset[Var] = frozenset()
    env: ConstraintSet | None = None

    def under(self, condition: Expr) -> Runs:
        """Return what is known where `condition` holds, or where it does not."""
        if not self.all:
            return self
        value = self._of_thread(condition)
        kept = () if value is None else (run for run in self.all if run.holds_for_both(value))
        return replace(self, all=tuple(kept))

    def naming(self, stmt: Let) -> Runs:
        """Return what is known behind a name."""
        if not self.all:
            return self
        if all(self._is_shared(run, stmt.value) for run in self.all):
            return self
        return replace(self, moving=self.moving | {stmt.var})

    def within(self, loop: For, env: ConstraintSet) -> Runs:
        """Return what is known inside of a sequential loop."""
        if not _stores_packed(loop.body):
            return NO_RUNS
        if contains(loop.body, Break, Continue):
            return replace(self, all=())
        counts = (loop.start, loop.stop, loop.step)
        kept = (run for run in self.all if all(self._is_shared(run, e) for e in counts))
        inner = replace(self, all=tuple(kept))
        first, stop, step = map(static_value, counts)
        if first != 0 or stop is None or step != 1:
            return inner
        lanes = Lanes(loop.var, stop, self.env or env)
        return replace(inner, all=(*inner.all, *_run(lanes, loop.body)))

    def fill_bytes(self, buffer: Buffer, offset: Expr, guard: Expr | None) -> bool:
        """Whether a thread that stores an element at `offset` stores the rest of its byte too.

        The element exists if `guard` holds, None: always. Behind the last element of all
        there is nothing to be kept.
        """
        place = self._of_thread(offset)
        if place is None:
            return False
        is_end = buffer.rank == 1 and buffer.origin is None
        inner = self if guard is None or is_end else self.under(guard)
        return any(run.is_whole(place) for run in inner.all)

    def _is_shared(self, run: PairedIterations, value: Expr) -> bool:
        moved = self._of_thread(value)
        return moved is not None and run.is_shared(moved)

    def _of_thread(self, value: Expr) -> Expr | None:
        if any(node in self.moving for node in walk(value)):
            return None
        return substitute(value, self.points)


NO_RUNS = Runs()
"""Where nothing is known about neighbours."""


def runs_of(body: Stmt, lanes: Lanes, points: dict[Node, Node], conditions: Sequence[Expr]) -> Runs:
    """Return what is known about the neighbours in the body of a parallel loop.

    `conditions` tell when a thread runs the neighbours `lanes`, in terms of thread and lane.
    """
    if not _stores_packed(body):
        return NO_RUNS
    runs = Runs(tuple(_run(lanes, body)), env=lanes.env)
    for condition in conditions:
        runs = runs.under(condition)
    return replace(runs, points=points)


def _run(lanes: Lanes, body: Stmt) -> Iterator[PairedIterations]:
    """Yield the neighbours of a loop, unless others may be told in between what they stored."""
    if lanes.count < 2 or lanes.count % 2 or any(_may_tell(node) for node in walk(body)):
        return
    dtype = lanes.var.dtype
    pair, half = Var("pair", dtype), Var("half", dtype)
    env = lanes.env.with_loop(pair, 0, lanes.count // 2).with_loop(half, 0, 2)
    first = as_expr(0, dtype) if lanes.count == 2 else pair * 2
    two = Lanes(half, 2, env)
    yield PairedIterations(lanes.var, first + half, two, frozenset(storages_written(body)))


def _may_tell(node: Node) -> bool:
    if isinstance(node, Call):
        return effect_of(node.function) is not Effect.NONE
    return isinstance(node, (Leaf, Parallel, OnThreads))


def _stores_packed(body: Stmt) -> bool:
    return any(is_packed(n.buffer) for n in nodes_of(body, Store))


def in_pairs(loop: Parallel, layout: LoopLayout, threads: int) -> LoopLayout:
    """Return a layout of `loop` in which a thread runs neighbours that share a byte.

    Only loops that hold no register tiles are dealt out anew; `layout` is returned for all
    others, and for those that store no packed elements.
    """
    stores = _stores_packed(loop.body)
    holds = any(n.scope.is_spread for n in nodes_of(loop.body, Buffer))
    total = math.prod(layout.extents)
    if not stores or holds or layout.vector > 1 or total % 2:
        return layout
    return planned(layout.extents, threads, 2, least=2)
