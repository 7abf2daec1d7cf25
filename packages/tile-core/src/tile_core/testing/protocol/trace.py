"""The control flow of a group of threads, followed for given values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tile_core.analysis.uniformity import Uniformity, is_thread_program
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Call
from tile_core.ir.gpu_intrinsics import RANGE_INTRINSICS
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.stmt import (
    Break,
    Continue,
    Evaluate,
    For,
    If,
    Launch,
    Leaf,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.async_copy import CopyArrive, CopyCommit, CopyWait
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.control import Barrier, ClusterSync, PingPongOrder
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.testing.protocol.access_boxes import Touched, touched
from tile_core.testing.protocol.events import BarrierId, Event
from tile_core.testing.protocol.values import Unknown, Values

SIGNALS = (
    BarrierInit, BarrierArrive, BarrierWait, Barrier, BulkCopy, BulkWait, FenceAsync, ClusterSync,
    Gemm, WaitProducts, PingPongOrder, RemoteCopy, CopyArrive, CopyCommit, CopyWait,
)  # fmt: skip
"""Operators that wait, tell somebody, or begin what goes on."""

MOST_ITERATIONS = 10_000


class Endless(Exception):
    """A loop does not end with the values that were chosen."""


class _Left(Exception):
    """A loop is left by `kind`: its iteration, or all of it."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind = kind


class LaunchFacts:
    """What is known of a launch before it is followed.

    `is_asynchronous` tells whether an engine computes an MMA.
    """

    def __init__(self, launch: Launch, is_asynchronous: Callable[[Gemm], bool]) -> None:
        self.launch = launch
        self.is_asynchronous = is_asynchronous
        self.size = math.prod(launch.cluster or (1,))
        self.threads = math.prod(launch.threads)
        self.by_thread = is_thread_program(launch)
        self.pairs = any(op.is_first is not None for op in nodes_of(launch.body, Gemm))
        self.uniform = Uniformity(launch) if self.by_thread else None
        self._names: dict[Buffer, str] = {}
        self._matters: dict[Node, bool] = {}
        self._steps: dict[Seq, tuple[Stmt, ...]] = {}
        self._calls: dict[Node, tuple[Call, ...]] = {}
        self._touched: dict[Node, tuple[Touched, ...]] = {}

    def name(self, buffer: Buffer) -> str:
        """Return the name of a tile or barrier: its own, with a number if others have it too."""
        if buffer not in self._names:
            others = sum(known.name == buffer.name for known in self._names)
            self._names[buffer] = buffer.name + (f" ({others + 1})" if others else "")
        return self._names[buffer]

    def matters(self, stmt: Stmt) -> bool:
        """Whether following a statement tells anything about barriers, tiles or scalars."""
        if stmt not in self._matters:
            self._matters[stmt] = any(map(_tells, walk(stmt)))
        return self._matters[stmt]

    def steps(self, stmt: Seq) -> tuple[Stmt, ...]:
        """Return the statements of a sequence that need to be followed."""
        if stmt not in self._steps:
            found = (item for item in stmt.body if isinstance(item, Let) or self.matters(item))
            self._steps[stmt] = tuple(found)
        return self._steps[stmt]

    def touched(self, stmt: Stmt) -> tuple[Touched, ...]:
        """Return the shared tiles that a statement touches."""
        if stmt not in self._touched:
            self._touched[stmt] = touched(stmt)
        return self._touched[stmt]

    def calls(self, stmt: Stmt) -> tuple[Call, ...]:
        """Return what a statement asks of a range of threads."""
        if stmt not in self._calls:
            found = (c for c in nodes_of(stmt, Call) if c.function in RANGE_INTRINSICS)
            self._calls[stmt] = tuple(found)
        return self._calls[stmt]

    def varies(self, node: Node) -> bool:
        """Whether threads of one group may find different values."""
        return self.uniform is not None and self.uniform.varies(node)


def _tells(node: Node) -> bool:
    if isinstance(node, Buffer):
        return node.scope in (Scope.SHARED, Scope.VAR, Scope.BARRIER)
    if isinstance(node, Call):
        return node.function in RANGE_INTRINSICS
    return isinstance(node, (*SIGNALS, Break, Continue))


@dataclass(slots=True)
class Group:
    """Threads that are followed together, and the events that they have made so far."""

    facts: LaunchFacts
    values: Values
    active: Sequence[int]  # their numbers in the block; branches leave some of them
    # first, count: the range of threads that runs.
    first: int
    count: int
    events: list[Event] = field(default_factory=list)
    # Arrivals that named barriers need, as they are found.
    arrivals: dict[BarrierId, int] = field(default_factory=dict)
    # How often each statement has been run, and each barrier arrived at.
    done: dict[object, int] = field(default_factory=dict)
    iterations: list[int] = field(default_factory=list)  # of pipelined loops, as they are come to
    most: float = math.inf  # iterations of a pipelined loop that is followed
    # products, stores: what engines have been told to do: products, and groups of copies into
    # tensors.
    products: int = 0
    stores: int = 0
    # copies, groups: how many copies these threads have begun, and by the end of each group of
    # them.
    copies: int = 0
    groups: list[int] = field(default_factory=list)

    @property
    def is_first(self) -> bool:
        """Whether the first of the running threads is one of these."""
        return self.first in self.active

    def next_turn(self, key: object) -> int:
        """Return how often something has been done, and count it."""
        turn = self.done.get(key, 0)
        self.done[key] = turn + 1
        return turn


Act = Callable[[Group, Stmt], None]


def follow(group: Group, stmt: Stmt, act: Act) -> None:
    """Run the control flow of `stmt`; `act` does what is left.

    Raises `Endless` if a loop does not end, or is too long for the group.
    """
    if not group.facts.matters(stmt) and not isinstance(stmt, Let):
        return
    match stmt:
        case Seq():
            for item in group.facts.steps(stmt):
                follow(group, item, act)
        case OnThreads():
            first = group.first + stmt.first
            mine = [t for t in group.active if first <= t < first + stmt.count]
            if mine:
                with_these(group, mine, stmt.body, act, first, stmt.count)
        case For() | Pipelined() | While():
            _loop(group, stmt, act)
        case If():
            _branch(group, stmt, act)
        case Let(var=var, value=value):
            group.values.name(var, value, by_thread=group.facts.varies(value))
            act(group, stmt)
        case Store(buffer=buffer, value=value) if buffer.scope is Scope.VAR:
            act(group, stmt)
            group.values.store(buffer, value)
        case Break() | Continue():
            raise _Left(type(stmt))
        case Parallel() | Leaf() | Store() | Evaluate():
            act(group, stmt)


def with_these(
    group: Group, active: Sequence[int], stmt: Stmt, act: Act, first: int, count: int
) -> None:
    """Follow a statement with some of the threads."""
    before = group.active, group.first, group.count
    group.active, group.first, group.count = active, first, count
    at_thread(group, active[0])
    try:
        follow(group, stmt, act)
    finally:
        group.active, group.first, group.count = before
        at_thread(group, before[0][0])


def _loop(group: Group, stmt: For | Pipelined | While, act: Act) -> None:
    if isinstance(stmt, While):
        iterations = 0
        while _holds(group, stmt):
            iterations += 1
            if iterations > MOST_ITERATIONS:
                raise Endless(
                    f"no end after {MOST_ITERATIONS} iterations of the loop at {stmt.span}"
                )
            if not _iteration(group, stmt.body, act):
                return
        return
    try:
        bounds = [int(group.values.of(e)) for e in (stmt.start, stmt.stop, stmt.step)]
    except Unknown:
        bounds = [0, _chosen(group, stmt), 1]
    if isinstance(stmt, Pipelined):
        group.iterations.append(len(range(*bounds)))
        if group.iterations[-1] > group.most:
            raise Endless(f"more than {group.most} iterations of the loop at {stmt.span}")
    for k in range(*bounds):
        group.values.vars[stmt.var] = k
        if not _iteration(group, stmt.body, act):
            return


def _iteration(group: Group, body: Stmt, act: Act) -> bool:
    """Follow one iteration; return whether others may follow."""
    try:
        follow(group, body, act)
    except _Left as left:
        return left.kind is Continue
    return True


def _holds(group: Group, stmt: If | While) -> bool:
    try:
        return bool(group.values.of(stmt.cond))
    except Unknown:
        return bool(_chosen(group, stmt))


def _chosen(group: Group, stmt: Stmt) -> int:
    """Return the outcome of what depends on results of the block: the same in every role."""
    place = (str(stmt.span), type(stmt).__name__)
    turn = group.next_turn(place)
    return group.values.scenario.otherwise("", (turn, 0 if stmt.span is None else stmt.span.line))


def _branch(group: Group, stmt: If, act: Act) -> None:
    if not group.facts.varies(stmt.cond):
        taken = stmt.then if _holds(group, stmt) else stmt.otherwise
        if taken is not None:
            follow(group, taken, act)
        return
    yes = [t for t in group.active if _holds_for(group, stmt, t)]
    no = [t for t in group.active if t not in yes]
    for threads, body in ((yes, stmt.then), (no, stmt.otherwise)):
        if threads and body is not None:
            with_these(group, threads, body, act, group.first, group.count)


def _holds_for(group: Group, stmt: If, thread: int) -> bool:
    """Return the outcome for a thread: what depends on results may happen."""
    at_thread(group, thread)
    try:
        return bool(group.values.of(stmt.cond))
    except Unknown:
        return True
    finally:
        at_thread(group, group.active[0])


def at_thread(group: Group, thread: int) -> None:
    """Let the indices of the thread be those of `thread`."""
    x, y, _ = group.facts.launch.threads
    numbers = (thread % x, thread // x % y, thread // (x * y))
    group.values.vars.update(zip(group.facts.launch.thread_vars, numbers, strict=True))
