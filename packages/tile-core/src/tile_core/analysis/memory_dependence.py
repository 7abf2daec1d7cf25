"""Accesses that other accesses must not overtake, and when two of them may meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from tile_core.analysis.memory_access import ExecutingThreads, MemoryAccess, Side, tensor_of
from tile_core.analysis.thread_dependence import ThreadAccess, ThreadDependences
from tile_core.arith.affine import Linear
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.effects import Mode
from tile_core.ir.expr import AddressOf, Binary, BinaryOp, Expr, Extent, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, substitute
from tile_core.records import dataclass, replace

Box: TypeAlias = "tuple[Side, ...]"
SameThread: TypeAlias = Callable[[MemoryAccess, MemoryAccess], bool]
"""Whether each element of two touches is certainly accessed by one and the same thread."""


class IterationDistance(Enum):
    """In which iteration of a loop something happened, seen from now."""

    LAST = "one iteration ago"
    EARLIER = "at least two iterations ago"
    OVER = "in some iteration of a loop that is over"


class Told(Enum):
    """What signals between threads, as of barriers in memory, say about an access."""

    NOT = "nothing"
    SENT = "a signal was sent after it"
    HEARD = "a signal that was sent after it was waited for"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that accesses are carried around."""

    path: tuple[int, ...]
    var: Var | None = field(compare=False)
    step: Extent = field(compare=False)
    bound: frozenset[Var] = field(compare=False)
    """What has another value in each iteration: the index, and names given in the body."""


@dataclass(frozen=True, slots=True)
class PendingAccess:
    """An access that no barrier has followed yet.

    `ages` are the loops it was carried around or out of, in that order. `in_flight` is, for an
    asynchronous copy that nobody waited for, how many groups were closed since it was issued (0:
    its own is still open), counted as far as any wait tells apart; else None. With `in_warp`, a
    barrier of the warp has followed: other threads of it have seen the access.
    """

    touch: MemoryAccess
    ages: tuple[tuple[Loop, IterationDistance], ...] = ()
    in_flight: int | None = None
    in_warp: bool = False
    told: Told = Told.NOT


def conflicting(earlier: Mode, later: Mode) -> bool:
    """Whether accesses of one element must keep their order: reads need not, nor do atomics."""
    return earlier is not later or earlier is Mode.WRITE


def never(a: MemoryAccess, b: MemoryAccess) -> bool:
    """Know nothing about threads."""
    return False


@dataclass(slots=True)
class MemoryDependences:
    """Which storages share bytes, and which boxes of one storage share elements.

    `spans` are the first byte of each shared storage and the one after its last, where the block's
    memory is planned. Without `threads`, barriers between the accesses that an explicit program of
    threads makes are the program's own affair.
    """

    spans: Mapping[Buffer, tuple[int, int]] = field(default_factory=dict)
    same_thread: SameThread = never
    threads: ThreadDependences | None = None
    stands_for: dict[Var, Var] = field(default_factory=dict)
    env: ConstraintSet = field(default_factory=ConstraintSet)
    _others: dict[tuple[object, ...], Var] = field(default_factory=dict)
    _boxes: dict[PendingAccess, Box] = field(default_factory=dict)
    _meetings: dict[tuple[PendingAccess, MemoryAccess], bool] = field(default_factory=dict)

    def conflict(self, before: PendingAccess, now: MemoryAccess) -> bool:
        """Whether a barrier must stand between two accesses."""
        earlier = before.touch
        if before.in_flight is not None or not conflicting(earlier.mode, now.mode):
            return False
        if not self.share_bytes(earlier.storage, now.storage):
            return False
        if earlier.executed_by is now.executed_by is ExecutingThreads.FIRST or _run_apart(
            earlier, now
        ):
            return False
        if (
            earlier.executed_by is now.executed_by is ExecutingThreads.THREAD
            and earlier.storage is now.storage
        ):
            return self._threads_meet(before, now)
        if earlier.buffer is now.buffer and self.apart(self.box(before), now.box):
            return False
        return earlier.storage is not now.storage or not self.same_thread(earlier, now)

    def _threads_meet(self, before: PendingAccess, now: MemoryAccess) -> bool:
        """Whether threads of an explicit program may meet at an element of one shared storage."""
        if self.threads is None or now.storage.scope is not Scope.SHARED:
            return False
        if before.told is Told.HEARD or _fill_by_pointers(before.touch, now):
            return False
        key = (before, now)
        if key not in self._meetings:
            self._meetings[key] = self.threads.meet(
                self._thread_access(before),
                ThreadAccess(now.box, now.when),
                same_buffer=before.touch.buffer is now.buffer,
                by_warp=before.in_warp,
            )
        return self._meetings[key]

    def _thread_access(self, pending: PendingAccess) -> ThreadAccess:
        when: Box = tuple((condition, 1) for condition in pending.touch.when)
        carried = []
        for loop, age in pending.ages:
            when = self._aged(when, loop, age)
            step = static_value(loop.step)
            if loop.var is not None and step is not None and age is not IterationDistance.OVER:
                ago = 1 if age is IterationDistance.LAST else self._iterations(loop, loop.var)
                carried.append((loop.var, step, ago))
        conditions = tuple(side[0] for side in when if side is not None)
        return ThreadAccess(
            self.box(pending), tuple(c for c in conditions if isinstance(c, Expr)), tuple(carried)
        )

    def share_bytes(self, a: Buffer, b: Buffer) -> bool:
        """Whether two storages may be, in part, the same memory."""
        if a is b:
            return True
        if a.scope is Scope.GLOBAL and b.scope is Scope.GLOBAL:
            first, second = tensor_of(a), tensor_of(b)
            return first is None or second is None or first is second
        here, there = self.spans.get(a), self.spans.get(b)
        return here is not None and there is not None and here[0] < there[1] and there[0] < here[1]

    def depends(
        self, later: MemoryAccess, earlier: MemoryAccess, then: Mapping[Node, Node]
    ) -> bool:
        """Whether `later` must not overtake `earlier`, in whose iteration variables are `then`."""
        if not conflicting(earlier.mode, later.mode):
            return False
        if not self.share_bytes(earlier.storage, later.storage):
            return False
        same = earlier.buffer is later.buffer
        return not (same and self.apart(earlier.box, _replaced(later.box, then)))

    def apart(self, a: Box, b: Box) -> bool:
        """Whether two boxes of one buffer certainly have no element in common."""
        return any(
            x is not None and y is not None and self._apart(x, y) for x, y in zip(a, b, strict=True)
        )

    def _apart(self, a: tuple[Extent, Extent], b: tuple[Extent, Extent]) -> bool:
        if _other_version(a, b, self.env):
            return True
        gap = self.env.linear(b[0]) - self.env.linear(a[0])
        after = gap - self.env.linear(a[1])
        before = -gap - self.env.linear(b[1])
        return self.env.is_natural(after) or self.env.is_natural(before)

    # Iterations of loops -------------------------------------------------------------------------

    def carried(self, pending: PendingAccess, loop: Loop) -> PendingAccess:
        """Return the access as the next iteration of `loop` sees it."""
        ages = dict(pending.ages)
        if not self._moves(pending, loop):
            return pending
        ages[loop] = IterationDistance.EARLIER if loop in ages else IterationDistance.LAST
        return replace(pending, ages=tuple(ages.items()))

    def left(self, pending: PendingAccess, loop: Loop) -> PendingAccess:
        """Return the access as what follows `loop` sees it."""
        if not self._moves(pending, loop):
            return pending
        ages = {**dict(pending.ages), loop: IterationDistance.OVER}
        return replace(pending, ages=tuple(ages.items()))

    def _moves(self, pending: PendingAccess, loop: Loop) -> bool:
        if any(known == loop for known, _ in pending.ages):
            return dict(pending.ages)[loop] is not IterationDistance.OVER
        names = _variables(self.box(pending))
        names |= {v for condition in pending.touch.when for v in free_variables(condition)}
        return bool(names & loop.bound)

    def box(self, pending: PendingAccess) -> Box:
        """Return the elements touched, in terms of what variables are now."""
        known = self._boxes.get(pending)
        if known is None:
            known = pending.touch.box
            for loop, age in pending.ages:
                known = self._aged(known, loop, age)
            self._boxes[pending] = known
        return known

    def _aged(self, box: Box, loop: Loop, age: IterationDistance) -> Box:
        then: dict[Node, Node] = {v: self._other(loop, age, v) for v in loop.bound}
        var, step = loop.var, static_value(loop.step)
        if var is not None and step is not None and age is not IterationDistance.OVER:
            then[var] = var - step * (
                1 if age is IterationDistance.LAST else self._iterations(loop, var)
            )
        return _replaced(box, then)

    def _other(self, loop: Loop, age: IterationDistance, var: Var) -> Var:
        """Return what stands for the value that `var` had."""
        key = (loop.path, age, var)
        if key not in self._others:
            then = self._others[key] = Var(f"{var.name}_then", var.dtype)
            self.stands_for[then] = self.stands_for.get(var, var)
        return self._others[key]

    def _iterations(self, loop: Loop, var: Var) -> Var:
        """Return how many iterations ago "earlier" is: at least two."""
        key = (loop.path, "iterations")
        if key not in self._others:
            iterations = self._others[key] = Var("iterations", var.dtype)
            self.env = self.env.with_bounds(iterations, Linear.of_number(2), None)
        return self._others[key]


def _run_apart(a: MemoryAccess, b: MemoryAccess) -> bool:
    """Whether two ranges of threads without a common one act: they have barriers of their own."""
    if a.threads is None or b.threads is None:
        return False
    (first, count), (other, others) = a.threads, b.threads
    return first + count <= other or other + others <= first


def _fill_by_pointers(a: MemoryAccess, b: MemoryAccess) -> bool:
    """Whether functions fill memory from two addresses on: how far they get is theirs to know."""
    return a.mode is b.mode is Mode.WRITE and all(isinstance(t.node, AddressOf) for t in (a, b))


def _variables(box: Box) -> set[Var]:
    parts = (part for side in box if side is not None for part in side)
    return {v for part in parts for v in free_variables(part)}


def _replaced(box: Box, then: Mapping[Node, Node]) -> Box:
    """Return a box with other values of variables."""

    def of(part: Extent) -> Extent:
        return part if isinstance(part, int) else substitute(part, dict(then))

    if not then:
        return box
    return tuple(None if side is None else (of(side[0]), of(side[1])) for side in box)


def _other_version(a: tuple[Extent, Extent], b: tuple[Extent, Extent], env: ConstraintSet) -> bool:
    """Whether ``x % n`` and ``y % n`` certainly differ, for single elements."""
    if static_value(a[1]) != 1 or static_value(b[1]) != 1:
        return False
    left, right = _remainder(a[0]), _remainder(b[0])
    if left is None or right is None or left[1] != right[1]:
        return False
    gap = env.linear(left[0]) - env.linear(right[0])
    return gap.is_number and gap.constant % left[1] != 0


def _remainder(index: Extent) -> tuple[Expr, int] | None:
    if isinstance(index, Binary) and index.op is BinaryOp.FLOORMOD:
        count = static_value(index.b)
        if count is not None and count > 0:
            return index.a, count
    return None
