"""The threads of all blocks of a cluster, and what each group of them does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from tile_core.errors import InternalError
from tile_core.ir.cluster_position import place_in_cluster
from tile_core.ir.node import contains, nodes_of, walk
from tile_core.ir.stmt import Kernel, Launch, Let, OnThreads, Seq, Stmt
from tile_core.ops.control import GROUP, ClusterSync, PingPongOrder
from tile_core.ops.gemm import Gemm
from tile_core.ops.mbarrier import BarrierInit
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.testing.protocol.events import (
    BarrierId,
    Box,
    Content,
    Event,
    ExpectedContent,
    Fill,
    Program,
    Read,
    Role,
    Statement,
    Tile,
    Write,
)
from tile_core.testing.protocol.statement_events import WARP, act
from tile_core.testing.protocol.tile_accesses import held_in, put
from tile_core.testing.protocol.trace import Group, LaunchFacts, at_thread, follow
from tile_core.testing.protocol.values import Scenario, Values

Interval = tuple[int, int]


def always(op: Gemm) -> bool:
    """Say that an engine computes every product."""
    return True


def has_protocol(launch: Launch) -> bool:
    """Whether threads of a launch go apart, wait at barriers in memory, or reach other blocks."""
    return contains(launch.body, BarrierInit, OnThreads, ClusterSync, RemoteCopy, PingPongOrder)


def program_of(
    launch: Launch,
    scenario: Scenario,
    meant: Mapping[tuple[int, Statement], Sequence[ExpectedContent]] | None = None,
    *,
    host: Sequence[Let] = (),
    is_asynchronous: Callable[[Gemm], bool] = always,
    unit: int = WARP,
) -> Program:
    """Return the events of the threads of one cluster, or of one block without clusters.

    `meant` is what each execution of a statement finds in tiles, see `meaning_of`; `host` are names
    that the host gives to values before the launch. `is_asynchronous` tells whether an engine
    computes an MMA. No more than `unit` threads of a range are followed together.
    """
    facts = LaunchFacts(launch, is_asynchronous)
    arrivals: dict[BarrierId, int] = {}
    roles: list[Role] = []
    for rank in range(facts.size):
        for node in nodes_of(launch.body, BarrierInit):
            for k, count in enumerate(node.counts):
                arrivals[facts.name(node.barriers), k, rank] = count
        block = _Block(facts, scenario, rank, host, unit)
        roles += block.roles()
        arrivals |= block.arrivals
    return Program(tuple(roles), arrivals, meant or {})


def meaning_of(
    launch: Launch, scenario: Scenario, *, host: Sequence[Let] = ()
) -> dict[tuple[int, Statement], list[ExpectedContent]]:
    """Return what each execution of a statement by a block finds in tiles, one after the other.

    `launch` is the program before anybody was given copies of his own: what it means. One that
    goes apart by itself, or reaches other blocks, means what its barriers say: nothing is known.
    """
    found: dict[tuple[int, Statement], list[ExpectedContent]] = {}
    if has_protocol(launch):
        return found
    facts = LaunchFacts(launch, lambda op: False)
    for rank in range(facts.size):
        group = _Block(facts, scenario, rank, host, facts.threads).group(range(facts.threads))
        follow(group, launch.body, act)
        tiles: dict[Tile, list[tuple[Box, Content]]] = {}
        for event in group.events:
            if isinstance(event, (Write, Fill)):
                put(tiles.setdefault(event.tile, []), event.box, event.content)
            elif isinstance(event, Read) and event.statement is not None:
                held = held_in(tiles.get(event.tile, []), event.box)
                found.setdefault((rank, event.statement), []).append(held)
    return found


def iterations_of(
    launch: Launch, scenario: Scenario, *, host: Sequence[Let] = (), most: float = math.inf
) -> list[int]:
    """Return how often each pipelined loop goes round, each time that it is come to.

    Raises `Endless` if one goes round more than `most` times.
    """
    facts = LaunchFacts(launch, lambda op: False)
    group = _Block(facts, scenario, 0, host, facts.threads).group(range(facts.threads))
    group.most = most
    follow(group, launch.body, lambda group, stmt: None)
    return group.iterations


class _Block:
    """One block: its indices, and the groups of its threads."""

    def __init__(
        self, facts: LaunchFacts, scenario: Scenario, rank: int, host: Sequence[Let], unit: int
    ) -> None:
        self.facts, self.scenario, self.rank = facts, scenario, rank
        self.host, self.unit = host, unit
        self.arrivals: dict[BarrierId, int] = {}
        self.ranges = list(_ranges(facts.launch.body, 0, facts.threads))
        self.followed: dict[object, tuple[Event, ...]] = {}

    def group(self, threads: Sequence[int]) -> Group:
        """Return threads that have done nothing yet."""
        facts = self.facts
        values = Values(self.scenario, self.rank)
        for let in self.host:
            values.name(let.var, let.value)
        values.vars.update(zip(facts.launch.block_vars, self._indices(values), strict=True))
        group = Group(facts, values, threads, 0, facts.threads, arrivals=self.arrivals)
        at_thread(group, threads[0])
        return group

    def _indices(self, values: Values) -> list[int]:
        launch = self.facts.launch
        cluster = (*launch.cluster, 1, 1, 1)[:3]
        found, rest = [], self.rank
        for extent, size, chosen in zip(launch.grid, cluster, self.scenario.block, strict=False):
            clusters = max(1, int(values.of(extent)) // size)
            found.append(chosen % clusters * size + rest % size)
            rest //= size
        assert place_in_cluster(found, launch.cluster)[1] == (self.rank if launch.cluster else 0)
        return found

    def roles(self) -> Iterator[Role]:
        """Yield the groups of threads, in their order."""
        for first, last in self._units():
            scope = min(
                (r for r in self.ranges if r[0] <= first and last <= r[1]),
                key=lambda r: r[1] - r[0],
                default=(0, self.facts.threads),
            )
            name = f"threads {first} to {last - 1}"
            name += f" of block {self.rank}" if self.facts.size > 1 else ""
            yield Role(name, self.rank, (self.rank, scope[0]), self._events(first, last, scope))

    def _units(self) -> Iterator[Interval]:
        """Yield groups of whole warps that no range divides."""
        cuts = {0, self.facts.threads}
        for first, last in self.ranges:
            cuts |= {first // WARP * WARP, -(-last // WARP) * WARP}
        marks = sorted(cut for cut in cuts if cut <= self.facts.threads)
        for low, high in pairwise(marks):
            for first in range(low, high, self.unit):
                yield first, min(first + self.unit, high)

    def _events(self, first: int, last: int, scope: Interval) -> tuple[Event, ...]:
        """Follow these threads, unless others have done the same."""
        inside = [r for r in self.ranges if r[0] < last and first < r[1]]
        key: object = (last - first, tuple((r, r[0] >= first) for r in inside), first == 0)
        if contains(self.facts.launch.body, PingPongOrder):
            key = (key, (first - scope[0]) // GROUP)
        if self.facts.by_thread:
            key = first
        if key not in self.followed:
            group = self.group(range(first, last))
            follow(group, self.facts.launch.body, act)
            self.followed[key] = tuple(group.events)
        return self.followed[key]


def _ranges(stmt: Stmt, base: int, count: int) -> Iterator[Interval]:
    """Yield the ranges of threads that statements name, those inside of others too."""
    match stmt:
        case OnThreads(first=first, count=size, body=body):
            yield base + first, base + first + size
            yield from _ranges(body, base + first, size)
        case Seq(body=body):
            for item in body:
                yield from _ranges(item, base, count)
        case _:
            for node in nodes_of(stmt, OnThreads):
                yield base + node.first, base + node.first + node.count


def host_names(kernel: Kernel, launch: Launch) -> list[Let]:
    """Return the names that the host gives to values before a launch.

    Raises `InternalError` if the kernel does not hold the launch.
    """
    inside = set(walk(launch))
    if launch not in set(walk(kernel.body)):
        raise InternalError("the kernel does not hold this launch", span=launch.span)
    return [n for n in nodes_of(kernel.body, Let) if n not in inside]
