"""Which statements of a loop must stay in which order, over any number of iterations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product

import numpy as np

from tile_core.analysis.memory_access import MemoryAccess, is_whole, memory_accesses
from tile_core.analysis.memory_dependence import Box, MemoryDependences, conflicting
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.effects import Mode
from tile_core.ir.expr import Extent, Var
from tile_core.ir.node import Node
from tile_core.ir.stmt import Leaf, Parallel, Seq, Stmt, Store
from tile_core.ops.control import Barrier
from tile_core.ops.signals import SIGNALS
from tile_core.passes.pipelines.loop_body import BranchPredicate, Piece, PipelineBody
from tile_core.records import dataclass

LARGEST_TILE = 1 << 22
"""Elements of the largest tile whose parts are told apart one by one."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each piece runs: at time ``iteration + stage``, and then in `order`.

    `order` and `stage` have an entry per piece; `versions` tells how many copies there are of a
    tile of which each iteration has its own.
    """

    order: tuple[int, ...]
    stage: tuple[int, ...]
    versions: Mapping[Buffer, int] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """The largest stage: how many iterations the first stage runs ahead of the last."""
        return max(self.stage, default=0)

    def runs_first(self, first: int, second: int, iterations: int) -> bool:
        """Whether piece `first` runs before piece `second` of so many iterations later."""
        now = self.stage[second] + iterations
        return (self.stage[first], self.order[first]) < (now, self.order[second])


@dataclass(frozen=True, slots=True)
class Violation:
    """Two pieces that a schedule would exchange, and what they share.

    `first` and `second` are positions of the pieces, the second so many `iterations` later; they
    share a storage or a name, or None where the order shows outside of memory.
    """

    first: int
    second: int
    iterations: int
    what: Buffer | Var | None


class Dependences:
    """The dependences between the pieces of one loop with the index `var`."""

    def __init__(self, body: PipelineBody, var: Var, memory: MemoryDependences) -> None:
        self.pieces, self.var, self.memory = body.pieces, var, memory
        self._moving = body.moving - {var}
        self._other: dict[Var, Var] = {}
        self._known: dict[tuple[int, int, int], Buffer | None] = {}

    def violation(self, schedule: Schedule) -> Violation | None:
        """Return the first dependence that `schedule` breaks, in program order, if any."""
        pairs = product(range(len(self.pieces)), repeat=2)
        found = (self._broken(schedule, first, second) for first, second in pairs)
        return next((broken for broken in found if broken is not None), None)

    def _broken(self, schedule: Schedule, first: int, second: int) -> Violation | None:
        a, b = self.pieces[first], self.pieces[second]
        nearest = 0 if first < second else 1
        names = a.defines & b.uses if first < second else frozenset[Var]()
        same_time = schedule.stage[first] == schedule.stage[second]
        if names and not (same_time and schedule.order[first] < schedule.order[second]):
            return Violation(first, second, 0, min(names, key=lambda v: v.name))
        for iterations in range(nearest, schedule.depth + 1):
            if schedule.runs_first(first, second, iterations):
                continue
            if _are_ordered(a, b):
                return Violation(first, second, iterations, None)
            storage = self.shared(first, second, iterations, schedule.versions)
            if storage is not None:
                return Violation(first, second, iterations, storage)
        return self._broken_version(schedule, first, second)

    def _broken_version(self, schedule: Schedule, first: int, second: int) -> Violation | None:
        """Return whether a version is taken over while it is still in use."""
        for storage, versions in schedule.versions.items():
            if schedule.runs_first(first, second, versions):
                continue
            if self._conflicting(first, second, storage):
                return Violation(first, second, versions, storage)
        return None

    def shared(
        self, first: int, second: int, iterations: int, versions: Mapping[Buffer, int]
    ) -> Buffer | None:
        """Return a storage over which two pieces conflict at that distance, if there is one.

        Storages of which each iteration has its own version are shared within one iteration only.
        """
        if iterations == 0 or not versions:
            key = (first, second, iterations)
            if key not in self._known:
                self._known[key] = self._search(first, second, iterations, {})
            return self._known[key]
        return self._search(first, second, iterations, versions)

    def _search(
        self, first: int, second: int, iterations: int, versions: Mapping[Buffer, int]
    ) -> Buffer | None:
        then = self._later(iterations)
        for a in self.pieces[first].touches:
            if iterations and a.storage in versions:
                continue
            for b in self.pieces[second].touches:
                if self.memory.depends(b, a, then):
                    return b.storage
        return None

    def _conflicting(self, first: int, second: int, storage: Buffer) -> bool:
        return any(
            a.storage is b.storage is storage and conflicting(a.mode, b.mode)
            for a in self.pieces[first].touches
            for b in self.pieces[second].touches
        )

    def _later(self, iterations: int) -> dict[Node, Node]:
        """Return what variables are `iterations` iterations later, in terms of this one's index."""
        if not iterations:
            return {}
        then: dict[Node, Node] = {v: self._unknown(v) for v in self._moving}
        return {**then, self.var: self.var + iterations}

    def _unknown(self, var: Var) -> Var:
        return self._other.setdefault(var, Var(f"{var.name}_later", var.dtype))

    # Tiles of which each iteration may have its own ----------------------------------------------

    def unclaimed(self, storage: Buffer) -> Piece | None:
        """Return a piece that may read what an earlier iteration left in `storage`, if any.

        Where there is none, each iteration writes all that it reads, and may have a tile of its
        own.
        """
        written: list[tuple[Piece, Buffer, Box]] = []
        for piece in self.pieces:
            reads = [t for t in piece.touches if t.storage is storage and t.mode is not Mode.WRITE]
            sure = [w for w in written if _goes_with(w[0], piece)]
            if any(not self._covered(t, sure) for t in reads):
                return piece
            written += [(piece, b, box) for b, box in _sure_writes(piece, storage)]
        return None

    def _covered(self, read: MemoryAccess, written: Sequence[tuple[Piece, Buffer, Box]]) -> bool:
        boxes = [box for _, buffer, box in written if buffer is read.buffer]
        if any(self._holds(box, read.box) for box in boxes):
            return True
        if any(is_whole(box, buffer) for _, buffer, box in written):
            return True
        shape = read.buffer.static_shape
        if shape is None or math.prod(shape) > LARGEST_TILE:
            return False
        filled = np.zeros(shape, np.bool_)
        for box in boxes:
            part = _slices(box)
            if part is not None:
                filled[part] = True
        wanted = _slices(read.box) or tuple(slice(None) for _ in shape)
        return bool(filled[wanted].all())

    def _holds(self, outer: Box, inner: Box) -> bool:
        return all(
            a is not None and b is not None and self._side_holds(a, b)
            for a, b in zip(outer, inner, strict=True)
        )

    def _side_holds(self, a: tuple[Extent, Extent], b: tuple[Extent, Extent]) -> bool:
        env = self.memory.env
        before = env.linear(b[0]) - env.linear(a[0])
        after = env.linear(a[0]) + env.linear(a[1]) - env.linear(b[0]) - env.linear(b[1])
        return env.is_natural(before) and env.is_natural(after)


def _are_ordered(a: Piece, b: Piece) -> bool:
    """Whether two pieces must keep their order whatever they touch."""
    if isinstance(a.stmt, SIGNALS) or isinstance(b.stmt, SIGNALS):
        return True  # other ranks see what stands before a signal, and write before a wait
    if isinstance(a.stmt, Barrier) or isinstance(b.stmt, Barrier):
        other = b if isinstance(a.stmt, Barrier) else a
        return not isinstance(other.stmt, (Leaf, Parallel)) or isinstance(other.stmt, Barrier)
    return a.acts and b.acts


def _goes_with(writer: Piece, reader: Piece) -> bool:
    """Whether `writer` has run whenever `reader` runs: no branch is around it alone."""
    around = [e.cond for e in writer.prefix if isinstance(e, BranchPredicate)]
    own = [e.cond for e in reader.prefix if isinstance(e, BranchPredicate)]
    return all(any(cond is c for c in own) for cond in around)


def _sure_writes(piece: Piece, storage: Buffer) -> Iterator[tuple[Buffer, Box]]:
    """Yield boxes of `storage` of which `piece` certainly writes every element."""
    if isinstance(piece.stmt, Leaf):
        for touch in piece.touches:
            if touch.storage is storage and touch.mode is Mode.WRITE:
                yield touch.buffer, touch.box
    elif isinstance(piece.stmt, Parallel):
        variables = dict(zip(piece.stmt.vars, piece.stmt.extents, strict=True))
        for store in _unconditional(piece.stmt.body):
            if store.buffer.storage is storage and _is_box(store, variables):
                (write,) = (t for t in memory_accesses(piece.stmt) if t.node is store)
                yield store.buffer, write.box


def _unconditional(stmt: Stmt) -> Iterator[Store]:
    if isinstance(stmt, Store):
        yield stmt
    elif isinstance(stmt, Seq):
        for item in stmt.body:
            yield from _unconditional(item)


def _is_box(store: Store, variables: Mapping[Var, Extent]) -> bool:
    """Whether the indices are different variables of the loop, or constants."""
    moving = [i for i in store.indices if isinstance(i, Var) and i in variables]
    fixed = all(
        (isinstance(i, Var) and i in variables) or static_value(i) is not None
        for i in store.indices
    )
    return fixed and len(set(moving)) == len(moving)


def _slices(box: Box) -> tuple[slice, ...] | None:
    parts = []
    for side in box:
        start = None if side is None else static_value(side[0])
        extent = None if side is None else static_value(side[1])
        if start is None or extent is None:
            return None
        parts.append(slice(start, start + extent))
    return tuple(parts)
