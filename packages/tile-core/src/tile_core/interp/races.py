"""Detection of unsynchronised sharing: who touched an element since parties last met.

A *party* is whoever runs concurrently with others: an iteration of a data-parallel loop, a
thread of a block, a block of a grid. An *epoch* is a stretch of time without
synchronisation among them. Within one epoch

* a read conflicts with a write by another party;
* a write conflicts with a read by another party, and with a write by another party, unless the
  same statement stores the same value;
* an atomic access conflicts with a plain one by another party.

So a statement that all threads run alike is no race, and each of them may read back what it has
stored. Values that happen to be equal in different statements say nothing about other runs; two
expansions of one macro are two statements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import numpy as np

from tile_core.errors import Span
from tile_core.interp.values import Array
from tile_core.ir.node import Node

At: TypeAlias = "tuple[Node, Span | None]"
"""The statement or expression that accesses something, and the line to report."""

MANY = -2
"""Stands for two parties or more."""


class AccessKind(Enum):
    """How an element was touched earlier."""

    READ = "read"
    WRITE = "written"
    ATOMIC = "updated atomically"


@dataclass(frozen=True, slots=True)
class Conflict:
    """The first conflicting access of a batch: its position, and the earlier access."""

    position: int
    earlier: AccessKind
    party: int
    span: Span | None


@dataclass(slots=True, eq=False)
class _Log:
    """The last party to touch each granule in one way, when, and on which line."""

    party: Array
    epoch: Array
    span: Array

    @classmethod
    def of(cls, size: int) -> _Log:
        return cls(*(np.full(size, -1, np.int32) for _ in range(3)))

    def foreign(self, units: Array, party: Array, epoch: int) -> Array:
        """Return which accesses follow one by another party in this epoch."""
        who = self.party[units]
        result: Array = (self.epoch[units] == epoch) & (who != party)
        return result

    def own(self, units: Array, party: Array, epoch: int) -> Array:
        result: Array = (self.epoch[units] == epoch) & (self.party[units] == party)
        return result

    def record(self, units: Array, party: Array, epoch: int, span: int) -> Array:
        """Note accesses; return which of them now share their granule with other parties."""
        who, when = self.party[units], self.epoch[units]
        merged = np.where((when != epoch) | (who == party), party, MANY)
        self.party[units] = merged
        self.epoch[units] = epoch
        self.span[units] = span
        stays = self.party[units]
        shared = (stays != party) | (merged == MANY)
        self.party[units[shared]] = MANY
        result: Array = self.party[units] == MANY
        return result


@dataclass(slots=True, eq=False)
class Tracker:
    """Accesses to one storage among parties of one kind."""

    reads: _Log
    writes: _Log
    atomics: _Log
    spans: list[Span | None] = field(default_factory=list)
    numbers: dict[Node, int] = field(default_factory=dict)
    joint: Array = field(default_factory=lambda: np.zeros((0,), np.int64))
    joint_epoch: int = -1

    @classmethod
    def of(cls, granules: int) -> Tracker:
        """Return a tracker for `granules` granules that nobody has touched."""
        return cls(_Log.of(granules), _Log.of(granules), _Log.of(granules))

    def read(self, units: Array, party: Array, epoch: int, at: At) -> Conflict | None:
        """Note reads by `party`, elementwise; return the first conflict."""
        foreign = self.writes.foreign(units, party, epoch) & ~self._in_joint(units, party, epoch)
        conflict = self._conflict(foreign, units, self.writes, AccessKind.WRITE)
        conflict = conflict or self._against_atomics(units, party, epoch)
        if conflict is None:
            mine = self.writes.own(units, party, epoch) | self._in_joint(units, party, epoch)
            rest = ~mine
            self.reads.record(units[rest], party[rest], epoch, self._number(at))
        return conflict

    def write(
        self, units: Array, party: Array, epoch: int, at: At, changes: Array
    ) -> Conflict | None:
        """Note writes by `party`; `changes` tells which of them alter the value.

        The caller decides about writes of one batch to the same granule.
        """
        readers = self.reads.foreign(units, party, epoch)
        conflict = self._conflict(readers, units, self.reads, AccessKind.READ)
        elsewhere = self.writes.span[units] != self._number(at)
        writers = self.writes.foreign(units, party, epoch) & (changes | elsewhere)
        conflict = conflict or self._conflict(writers, units, self.writes, AccessKind.WRITE)
        conflict = conflict or self._against_atomics(units, party, epoch)
        if conflict is None:
            before = self.writes.party[units], self.writes.epoch[units]
            shared = self.writes.record(units, party, epoch, self._number(at))
            if shared.any():
                self._join(units, party, epoch, shared, before)
        return conflict

    def atomic(self, units: Array, party: Array, epoch: int, at: At) -> Conflict | None:
        """Note atomic updates by `party`; return the first conflict with a plain access."""
        readers = self.reads.foreign(units, party, epoch)
        conflict = self._conflict(readers, units, self.reads, AccessKind.READ)
        writers = self.writes.foreign(units, party, epoch)
        conflict = conflict or self._conflict(writers, units, self.writes, AccessKind.WRITE)
        if conflict is None:
            self.atomics.record(units, party, epoch, self._number(at))
        return conflict

    def _against_atomics(self, units: Array, party: Array, epoch: int) -> Conflict | None:
        foreign = self.atomics.foreign(units, party, epoch)
        return self._conflict(foreign, units, self.atomics, AccessKind.ATOMIC)

    def _conflict(self, bad: Array, units: Array, log: _Log, touch: AccessKind) -> Conflict | None:
        if not bad.any():
            return None
        position = int(np.argmax(bad))
        unit = units[position]
        return Conflict(position, touch, int(log.party[unit]), self.spans[log.span[unit]])

    def _number(self, at: At) -> int:
        node, span = at
        number = self.numbers.get(node)
        if number is None:
            number = self.numbers[node] = len(self.spans)
            self.spans.append(span)
        return number

    # Granules that several parties wrote alike: who they were, as sorted (unit, party) pairs.

    def _keys(self, units: Array, party: Array) -> Array:
        return (units.astype(np.int64) << 31) | party

    def _in_joint(self, units: Array, party: Array, epoch: int) -> Array:
        if self.joint_epoch != epoch:
            return np.zeros(units.shape, np.bool_)
        keys = self._keys(units, party)
        where = np.minimum(np.searchsorted(self.joint, keys), len(self.joint) - 1)
        result: Array = self.joint[where] == keys
        return result

    def _join(
        self, units: Array, party: Array, epoch: int, shared: Array, before: tuple[Array, Array]
    ) -> None:
        who, when = before
        earlier = shared & (when == epoch) & (who >= 0)
        added = [self._keys(units[shared], party[shared]), self._keys(units[earlier], who[earlier])]
        kept = [self.joint] if self.joint_epoch == epoch else []
        self.joint = np.unique(np.concatenate([*kept, *added]))
        self.joint_epoch = epoch
