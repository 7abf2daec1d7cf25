"""Accesses that other accesses must not overtake, and when two of them may meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.effects import Mode
from tile_core.ir.evaluate import free_variables
from tile_core.ir.expr import Binary, BinaryOp, Expr, Extent, Var
from tile_core.ir.node import Node, substitute
from tile_core.passes.linear import Linear
from tile_core.passes.ranges import Env
from tile_core.passes.touches import Doer, Side, Touch, tensor_of

Box: TypeAlias = "tuple[Side, ...]"
SameThread: TypeAlias = Callable[[Touch, Touch], bool]
"""Whether each element of two touches is certainly accessed by one and the same thread."""


class Age(Enum):
    """In which round of a loop something happened, seen from now."""

    LAST = "one round ago"
    EARLIER = "at least two rounds ago"
    OVER = "in some round of a loop that is over"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that accesses are carried around."""

    path: tuple[int, ...]
    var: Var | None = field(compare=False)
    step: Extent = field(compare=False)
    bound: frozenset[Var] = field(compare=False)
    """What has another value in each round: the index, and names given in the body."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An access that no barrier has followed yet.

    Parameters
    ----------
    ages
        The loops it was carried around or out of, in that order.
    in_flight
        For an asynchronous copy that nobody waited for: how many groups were closed since
        it was issued (0: its own is still open), counted as far as any wait tells apart;
        else None.
    """

    touch: Touch
    ages: tuple[tuple[Loop, Age], ...] = ()
    in_flight: int | None = None


def never(a: Touch, b: Touch) -> bool:
    """Know nothing about threads."""
    return False


@dataclass(slots=True)
class Memory:
    """Which storages share bytes, and which boxes of one storage share elements.

    Parameters
    ----------
    spans
        For each shared storage the first byte and the one after the last in the block's
        memory, where that is planned.
    same_thread
        What is known of threads.
    """

    spans: Mapping[Buffer, tuple[int, int]] = field(default_factory=dict)
    same_thread: SameThread = never
    env: Env = field(default_factory=Env)
    _others: dict[tuple[object, ...], Var] = field(default_factory=dict)
    _boxes: dict[Pending, Box] = field(default_factory=dict)

    def conflict(self, before: Pending, now: Touch) -> bool:
        """Whether a barrier must stand between two accesses."""
        earlier = before.touch
        if before.in_flight is not None or not _modes_conflict(earlier.mode, now.mode):
            return False
        if not self.share_bytes(earlier.storage, now.storage):
            return False
        if earlier.doer is now.doer and now.doer in (Doer.FIRST, Doer.THREAD):
            return False
        if _run_apart(earlier, now):
            return False
        if earlier.buffer is now.buffer and self.apart(self.box(before), now.box):
            return False
        return earlier.storage is not now.storage or not self.same_thread(earlier, now)

    def share_bytes(self, a: Buffer, b: Buffer) -> bool:
        """Whether two storages may be, in part, the same memory."""
        if a is b:
            return True
        if a.scope is Scope.GLOBAL and b.scope is Scope.GLOBAL:
            first, second = tensor_of(a), tensor_of(b)
            return first is None or second is None or first is second
        here, there = self.spans.get(a), self.spans.get(b)
        return here is not None and there is not None and here[0] < there[1] and there[0] < here[1]

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

    # Rounds of loops -------------------------------------------------------------------------

    def carried(self, pending: Pending, loop: Loop) -> Pending:
        """Return the access as the next round of `loop` sees it."""
        ages = dict(pending.ages)
        if not self._moves(pending, loop):
            return pending
        ages[loop] = Age.EARLIER if loop in ages else Age.LAST
        return Pending(pending.touch, tuple(ages.items()), pending.in_flight)

    def left(self, pending: Pending, loop: Loop) -> Pending:
        """Return the access as what follows `loop` sees it."""
        if not self._moves(pending, loop):
            return pending
        ages = {**dict(pending.ages), loop: Age.OVER}
        return Pending(pending.touch, tuple(ages.items()), pending.in_flight)

    def _moves(self, pending: Pending, loop: Loop) -> bool:
        if any(known == loop for known, _ in pending.ages):
            return dict(pending.ages)[loop] is not Age.OVER
        return bool(_variables(self.box(pending)) & loop.bound)

    def box(self, pending: Pending) -> Box:
        """Return the elements touched, in terms of what variables are now."""
        known = self._boxes.get(pending)
        if known is None:
            known = pending.touch.box
            for loop, age in pending.ages:
                known = self._aged(known, loop, age)
            self._boxes[pending] = known
        return known

    def _aged(self, box: Box, loop: Loop, age: Age) -> Box:
        then: dict[Node, Node] = {v: self._other(loop, age, v) for v in loop.bound}
        var, step = loop.var, static_value(loop.step)
        if var is not None and step is not None and age is not Age.OVER:
            then[var] = var - step * (1 if age is Age.LAST else self._rounds(loop, var))
        return tuple(
            None if side is None else (_replaced(side[0], then), _replaced(side[1], then))
            for side in box
        )

    def _other(self, loop: Loop, age: Age, var: Var) -> Var:
        """Return what stands for the value that `var` had."""
        return self._others.setdefault((loop.path, age, var), Var(f"{var.name}_then", var.dtype))

    def _rounds(self, loop: Loop, var: Var) -> Var:
        """Return how many rounds ago "earlier" is: at least two."""
        key = (loop.path, "rounds")
        if key not in self._others:
            rounds = self._others[key] = Var("rounds", var.dtype)
            self.env = self.env.with_bounds(rounds, Linear.of_number(2), None)
        return self._others[key]


def _run_apart(a: Touch, b: Touch) -> bool:
    """Whether two ranges of threads without a common one act: they have barriers of their own."""
    if a.threads is None or b.threads is None:
        return False
    (first, count), (other, others) = a.threads, b.threads
    return first + count <= other or other + others <= first


def _modes_conflict(a: Mode, b: Mode) -> bool:
    if a is Mode.READ and b is Mode.READ:
        return False
    return not (a is Mode.ATOMIC and b is Mode.ATOMIC)


def _variables(box: Box) -> set[Var]:
    parts = (part for side in box if side is not None for part in side)
    return {v for part in parts for v in free_variables(part)}


def _replaced(part: Extent, then: dict[Node, Node]) -> Extent:
    return part if isinstance(part, int) else substitute(part, then)


def _other_version(a: tuple[Extent, Extent], b: tuple[Extent, Extent], env: Env) -> bool:
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
