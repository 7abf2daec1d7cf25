"""What is acted on: roles, their clocks, values and barriers, and bars as they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tile_api.report.model import Activity
from tile_core.arith.evaluate import evaluate
from tile_core.errors import InternalError, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Expr, Extent, Load, Var
from tile_core.ir.node import Node, rewrite, walk

USUAL = 512
"""What symbolic sizes are taken to be, or the next number that their contracts allow."""


@dataclass(slots=True)
class Values:
    """Integers that are known, of variables and of mutable scalars (``local.var``)."""

    of: dict[Var, int] = field(default_factory=dict)
    kept: dict[Buffer, int] = field(default_factory=dict)

    def copy(self) -> Values:
        """Return the same values, to be changed apart."""
        return Values(dict(self.of), dict(self.kept))

    def number(self, expr: Extent) -> int | None:
        """Return the value of `expr`, None if it depends on data or on what nobody knows."""
        if isinstance(expr, int):
            return expr
        known: Expr = expr
        if any(isinstance(node, Load) for node in walk(expr)):
            known = rewrite(expr, self._read)
        try:
            return int(evaluate(known, self.of))
        except (InternalError, ArithmeticError, KeyError, ValueError):
            return None

    def store(self, buffer: Buffer, value: Expr) -> None:
        """Change a mutable scalar; it has no value if `value` has none."""
        if buffer.scope is not Scope.VAR:
            return
        number = self.number(value)
        if number is None:
            self.kept.pop(buffer, None)
        else:
            self.kept[buffer] = number

    def _read(self, node: Node) -> Node:
        if isinstance(node, Load) and node.buffer in self.kept:
            return Const(self.kept[node.buffer], node.dtype)
        return node


def usual_size(var: Var) -> int:
    """Return a size that the contract of a symbolic dimension allows."""
    promised = var.contract
    if promised is None:
        return USUAL
    size = max(-(-USUAL // promised.multiple_of) * promised.multiple_of, promised.smallest)
    return size if promised.largest is None else min(size, promised.largest)


@dataclass(slots=True)
class PhaseBarrier:
    """A barrier in shared memory: `needed` arrivals, and bytes, complete each of its phases."""

    needed: int
    completed: list[float] = field(default_factory=list)
    arrivals: int = 0
    expected: int = 0
    landed: int = 0
    latest: float = 0.0

    def arrive(self, time: float, count: int = 1, nbytes: int = 0) -> None:
        """Count arrivals, and bytes that must land before the phase is complete."""
        self.arrivals += count
        self.expected += nbytes
        self._count(time)

    def land(self, time: float, nbytes: int, *, expects: bool = False) -> None:
        """Count bytes that will have arrived at `time`."""
        self.expected += nbytes if expects else 0
        self.landed += nbytes
        self._count(time)

    def passed(self, parity: int) -> float | None:
        """Return when the phase of `parity` was completed; None if that is still to come."""
        if (len(self.completed) - 1) % 2 != parity:
            return None
        return self.completed[-1] if self.completed else 0.0

    def _count(self, time: float) -> None:
        self.latest = max(self.latest, time)
        if self.arrivals >= self.needed and self.landed >= self.expected:
            self.completed.append(self.latest)
            self.arrivals = self.expected = self.landed = 0
            self.latest = 0.0


@dataclass(slots=True)
class Meeting:
    """A barrier with a number, at which so many threads meet again and again."""

    done: list[float] = field(default_factory=list)
    arrived: int = 0
    latest: float = 0.0

    def arrive(self, time: float, threads: int, needed: int) -> int:
        """Count threads, and return the number of the meeting that they take part in."""
        meeting = len(self.done)
        self.arrived += threads
        self.latest = max(self.latest, time)
        if self.arrived >= needed:
            self.done.append(self.latest)
            self.arrived, self.latest = 0, 0.0
        return meeting

    def over(self, meeting: int) -> float | None:
        """Return when a meeting was over; None if that is still to come."""
        return self.done[meeting] if meeting < len(self.done) else None


MOST_BARS = 6000
"""Programs are acted out until there are so many bars."""

LaneKey: TypeAlias = "tuple[str, str, int]"
"""Kind, name and number: threads by their first one, tiles by their version."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A bar whose lane has no number yet."""

    lane: LaneKey
    activity: Activity
    start: float
    end: float
    number: int
    text: str
    span: Span | None


@dataclass(slots=True)
class Actor:
    """A range of threads that runs one program; `threads` of them run the statement at hand.

    `begun` and `groups` are when copies that it began end: those of the open group, and of each
    closed one; `products` and `stores` when what it left in flight ends; `loads` when what is
    loaded into registers is there.
    """

    name: str
    first: int
    threads: int
    values: Values
    time: float = 0.0
    begun: float = 0.0
    groups: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)
    stores: list[float] = field(default_factory=list)
    loads: dict[Buffer, float] = field(default_factory=dict)

    @property
    def lane(self) -> LaneKey:
        """Where its own bars are."""
        return ("threads", self.name, self.first)

    @property
    def unit(self) -> LaneKey:
        """Where products are that run beside it."""
        return ("unit", self.name, self.first)


def actor_of(first: int, threads: int, values: Values, time: float = 0.0) -> Actor:
    """Return threads that begin at `time`."""
    return Actor(f"threads {first} to {first + threads - 1}", first, threads, values, time)


class EnoughError(Exception):
    """There are as many bars as can be looked at."""


@dataclass(slots=True)
class Stage:
    """One block, while its program is acted out."""

    warp_size: int
    bars: list[Drawn] = field(default_factory=list)
    barriers: dict[tuple[Buffer, int], PhaseBarrier] = field(default_factory=dict)
    counts: dict[Buffer, tuple[int, ...]] = field(default_factory=dict)
    meetings: dict[int, Meeting] = field(default_factory=dict)
    filled: set[Buffer] = field(default_factory=set)
    iterations: dict[object, int] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def draw(
        self,
        lane: LaneKey,
        activity: Activity,
        times: tuple[float, float],
        number: int,
        node: Node,
        text: str,
    ) -> None:
        """Add a bar, or raise `EnoughError`."""
        if len(self.bars) >= MOST_BARS:
            raise EnoughError
        self.bars.append(Drawn(lane, activity, *times, number, text, node.span))

    def iteration_of(self, key: object) -> int:
        """Return how often this was asked for `key` before."""
        number = self.iterations.get(key, 0)
        self.iterations[key] = number + 1
        return number

    def barrier(self, buffer: Buffer, index: int) -> PhaseBarrier:
        """Return a barrier of a buffer of barriers, made at first use."""
        key = (buffer.storage, index)
        if key not in self.barriers:
            counts = self.counts.get(buffer.storage, ())
            needed = counts[index] if index < len(counts) else 1
            self.barriers[key] = PhaseBarrier(needed)
        return self.barriers[key]
