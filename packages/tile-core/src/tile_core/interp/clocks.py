"""What blocks know of each other: vector clocks, where blocks order themselves by signals.

Each block counts its signals. An access is ordered before what a block does if that block knows of
the signal behind it, by waits for flags, from one block to the next. Other accesses of one element
conflict as `tile_core.interp.races` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tile_core.errors import Span
from tile_core.interp.memory import Storage
from tile_core.interp.races import AccessKind, At, Conflict
from tile_core.interp.values import Array
from tile_core.ir.stmt import Stmt


@dataclass(slots=True, eq=False)
class Flag:
    """A counter that blocks raise, with what each of them knew when it did."""

    taken: int = 0
    values: list[int] = field(default_factory=list)
    clocks: list[Array] = field(default_factory=list)

    @property
    def value(self) -> int:
        """What a wait compares."""
        return sum(self.values) - self.taken

    def known(self, value: int, parties: int) -> Array:
        """Return what certainly happened before the flag was `value`.

        Signals may come in any order that they themselves do not forbid: a moment of some party is
        certain if those that know only of earlier moments do not raise the flag so far.
        """
        if not self.clocks:
            return np.zeros(parties, np.int64)
        clocks = np.zeros((len(self.clocks), parties), np.int64)
        for row, clock in zip(clocks, self.clocks, strict=True):
            row[: len(clock)] = clock
        order = np.argsort(clocks, axis=0, kind="stable")
        reached = np.cumsum(np.array(self.values)[order], axis=0) >= self.taken + value
        needed = np.take_along_axis(order, np.argmax(reached, axis=0)[None], axis=0)
        found: Array = np.take_along_axis(clocks, needed, axis=0)[0]
        return found if value > 0 else np.zeros(parties, np.int64)


class Clocks:
    """The blocks of all launches so far, and the latest moment of each that each knows of.

    Parameters
    ----------
    body
        All launches: what any of them writes, others may race for.
    """

    def __init__(self, body: Stmt) -> None:
        self.body = body
        self.times = np.zeros((0, 0), np.int64)
        self.names: list[tuple[int, int]] = []  # by party: its rank, and its number there
        self.flags: dict[tuple[object, ...], Flag] = {}
        self._trackers: dict[Storage, ClockTracker] = {}

    def begin(self, blocks: int, ranks: int) -> int:
        """Note that a grid begins, behind what blocks of the same rank did; return its first party.

        Nothing orders what different ranks launch.
        """
        first = len(self.names)
        before = self.times
        self.times = np.zeros((first + blocks, first + blocks), np.int64)
        self.times[:first, :first] = before
        share = blocks // ranks
        self.names += [(k // share, k % share) for k in range(blocks)]
        ranks_before = np.array([rank for rank, _ in self.names[:first]])
        for party in range(first, first + blocks):
            mine = np.flatnonzero(ranks_before == self.names[party][0])
            if len(mine):
                self.times[party] = self.times[mine].max(axis=0)
            self.times[party, party] = 1
        return first

    def release(self, party: int) -> Array:
        """Return what a block knows, and let its next moment begin."""
        known: Array = self.times[party].copy()
        self.times[party, party] += 1
        return known

    def acquire(self, party: int, known: Array) -> None:
        """Let a block know what others knew."""
        np.maximum(self.times[party], known, out=self.times[party])

    def meet(self, parties: Sequence[int]) -> None:
        """Let blocks know all that any of them knew: they have waited for each other."""
        known = self.times[parties].max(axis=0)
        for party in parties:
            self.times[party] = known
            self.times[party, party] += 1

    def meet_all(self, party: int) -> None:
        """Let a block know of all: an acquiring atomic, whoever released."""
        self.acquire(party, self.times.max(axis=0))

    def tracker(self, storage: Storage) -> ClockTracker:
        """Return the accesses to some memory so far."""
        known = self._trackers.get(storage)
        if known is None:
            known = self._trackers[storage] = ClockTracker(self, storage.granules)
        known.make_room()
        return known

    def told(self, party: int) -> str:
        """Return the name of a block."""
        rank, number = self.names[party]
        return f"block {number} of rank {rank}"


class _EachParty:
    """When each party last touched each granule in one way, and where."""

    def __init__(self, granules: int) -> None:
        self.times = np.zeros((granules, 0), np.int64)
        self.spans = np.zeros((granules, 0), np.int32)

    def make_room(self, parties: int) -> None:
        more = parties - self.times.shape[1]
        if more > 0:
            self.times = np.pad(self.times, ((0, 0), (0, more)))
            self.spans = np.pad(self.spans, ((0, 0), (0, more)))

    def record(self, units: Array, party: int, time: int, span: int) -> None:
        self.times[units, party] = time
        self.spans[units, party] = span


class ClockTracker:
    """Accesses to one storage among blocks, as `races.Tracker` keeps them among others."""

    def __init__(self, clocks: Clocks, granules: int) -> None:
        self.clocks = clocks
        self.reads, self.atomics = _EachParty(granules), _EachParty(granules)
        self.writer = np.full(granules, -1, np.int32)
        self.written = np.zeros(granules, np.int64)
        self.line = np.zeros(granules, np.int32)
        self.spans: list[Span | None] = []
        self.numbers: dict[object, int] = {}

    def make_room(self) -> None:
        """Let there be a place for each party."""
        for log in (self.reads, self.atomics):
            log.make_room(len(self.clocks.names))

    def read(self, units: Array, party: Array, epoch: int, at: At) -> Conflict | None:
        """Note reads by a block; return the first conflict."""
        if not len(units):
            return None
        mine = int(party[0])
        found = self._written(units, mine, None) or self._touched(units, mine, AccessKind.ATOMIC)
        if found is None:
            self.reads.record(units, mine, self._now(mine), self._number(at))
        return found

    def write(
        self, units: Array, party: Array, epoch: int, at: At, changes: Array
    ) -> Conflict | None:
        """Note writes by a block; `changes` tells which of them alter the value."""
        if not len(units):
            return None
        mine, line = int(party[0]), self._number(at)
        found = self._touched(units, mine, AccessKind.READ)
        found = found or self._written(units, mine, changes | (self.line[units] != line))
        found = found or self._touched(units, mine, AccessKind.ATOMIC)
        if found is None:
            self.writer[units], self.written[units] = mine, self._now(mine)
            self.line[units] = line
        return found

    def atomic(self, units: Array, party: Array, epoch: int, at: At) -> Conflict | None:
        """Note atomic updates by a block; return the first conflict with a plain access."""
        if not len(units):
            return None
        mine = int(party[0])
        found = self._touched(units, mine, AccessKind.READ) or self._written(units, mine, None)
        if found is None:
            self.atomics.record(units, mine, self._now(mine), self._number(at))
        return found

    def _now(self, party: int) -> int:
        return int(self.clocks.times[party, party])

    def _written(self, units: Array, party: int, matters: Array | None) -> Conflict | None:
        """Return the first of `units` whose last write `party` does not know of."""
        writer = self.writer[units]
        bad = (writer >= 0) & (self.written[units] > self.clocks.times[party][writer])
        if matters is not None:
            bad &= matters
        if not bad.any():
            return None
        first = int(np.argmax(bad))
        line = self.spans[self.line[units[first]]]
        return Conflict(first, AccessKind.WRITE, int(writer[first]), line)

    def _touched(self, units: Array, party: int, how: AccessKind) -> Conflict | None:
        """Return the first of `units` that others touched which `party` does not know of."""
        log = self.reads if how is AccessKind.READ else self.atomics
        bad = log.times[units] > self.clocks.times[party]
        if not bad.any():
            return None
        first, other = (int(k[0]) for k in np.nonzero(bad))
        return Conflict(first, how, other, self.spans[log.spans[units[first], other]])

    def _number(self, at: At) -> int:
        node, span = at
        number = self.numbers.get(node)
        if number is None:
            number = self.numbers[node] = len(self.spans)
            self.spans.append(span)
        return number
