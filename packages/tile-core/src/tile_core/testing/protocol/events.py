"""What each range of threads does to barriers and tiles, as a list for given sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from tile_core.errors import InternalError
from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.effects import Mode, accesses, storages_read
from tile_core.ir.evaluate import evaluate, is_host_evaluable
from tile_core.ir.expr import Expr, Extent, Load, Var
from tile_core.ir.node import Node, substitute, walk
from tile_core.ir.stmt import (
    Alloc,
    For,
    If,
    Launch,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm, WaitProducts
from tile_core.ops.group_order import GroupOrder, Step
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait

Slot: TypeAlias = tuple[str, int]
"""One of the versions of a tile, or of the barriers of a ring: its buffer's name, and which."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the phase of `parity` of a barrier has completed."""

    barrier: Slot
    parity: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """Arrive at a barrier `count` times, and let its phase wait for `nbytes` too."""

    barrier: Slot
    count: int
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Fill:
    """Start fill `number` of a tile, into one version; the barrier hears of its bytes later."""

    tile: Slot
    barrier: Slot
    nbytes: int
    number: int


@dataclass(frozen=True, slots=True)
class Write:
    """Fill a version of a tile by stores, fill `number`: it is there at once."""

    tile: Slot
    number: int


@dataclass(frozen=True, slots=True)
class Use:
    """Read a version of a tile, which fill `number` must have filled.

    Parameters
    ----------
    lasts
        The reading goes on, as product number `lasts` of these threads, until they wait for
        it; None if it is over at once.
    """

    tile: Slot
    number: int
    lasts: int | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """Wait until at most `pending` of the products begun so far go on."""

    begun: int
    pending: int


Event: TypeAlias = "Wait | Arrive | Fill | Write | Use | Settle"


@dataclass(frozen=True, slots=True)
class Program:
    """What the ranges of threads of one block do.

    Parameters
    ----------
    roles
        The events of each, in order.
    arrivals
        How many arrivals complete a phase of each barrier.
    """

    roles: tuple[tuple[Event, ...], ...]
    arrivals: Mapping[Slot, int]


Value: TypeAlias = "int | Sequence[int]"
"""A number, or the elements of a tensor."""

Statement: TypeAlias = tuple[object, str, str]
"""What tells statements of the user apart: place, kind, and the tile that is read."""

GROUP = 128
"""Threads that follow one program together: others of the same range may be ahead of them."""

WARP = 32


def fills_seen(launch: Launch, values: Mapping[str, Value]) -> dict[Statement, list[int]]:
    """Return which fill of a tile each execution of a statement reads, one after the other.

    `launch` is the program before anybody was given copies of his own: what it means.
    """
    tracer = _Tracer(dict(values), 1, {})
    tracer.run(launch.body)
    return tracer.seen


def program_of(
    launch: Launch, values: Mapping[str, Value], seen: Mapping[Statement, list[int]]
) -> Program:
    """Return the events of a block of `launch`, a role for each 128 threads of a range.

    Parameters
    ----------
    values
        What the variables outside are, by name: indices of the block, symbols of shapes, and
        tensors that sizes are read in, as one number for all elements or one for each row.
    seen
        What each execution of a statement must read, see `fills_seen`.

    Raises
    ------
    InternalError
        If a loop or branch depends on what the kernel computes from tensors.
    """
    arrivals: dict[Slot, int] = {}
    for node in walk(launch.body):
        if isinstance(node, BarrierInit):
            for k, count in enumerate(node.counts):
                arrivals[node.barriers.name, k] = count
        elif isinstance(node, GroupOrder):
            arrivals["turn", 0] = arrivals["turn", 1] = 1
    roles = []
    handed = _handed(launch)
    watched = _filled_by_engine(launch) | {tile.name for tile in handed}
    for stmt in _ranges(launch.body):
        groups, rest = divmod(stmt.count, GROUP)
        for number, threads in enumerate((*[GROUP] * groups, *([rest] if rest else []))):
            tracer = _Tracer(
                dict(values), -(-threads // WARP), seen, number, handed, frozenset(watched)
            )
            tracer.run(stmt.body)
            roles.append(tuple(tracer.events))
    return Program(tuple(roles), arrivals)


def _ranges(stmt: Stmt) -> Iterator[OnThreads]:
    """Yield the ranges of threads that run beside each other, those inside of others too."""
    match stmt:
        case OnThreads(body=body):
            inner = list(_ranges(body))
            yield from inner or [stmt]
        case Seq(body=body):
            for item in body:
                yield from _ranges(item)


def _handed(launch: Launch) -> frozenset[Buffer]:
    """Return the shared tiles that some threads store to and others read."""
    ranges = list(_ranges(launch.body))
    stored = [_stored(stmt.body) for stmt in ranges]
    read = [storages_read(stmt.body).keys() for stmt in ranges]
    return frozenset(
        tile
        for k, tiles in enumerate(stored)
        for tile in tiles
        if any(tile in others for n, others in enumerate(read) if n != k)
    )


def _filled_by_engine(launch: Launch) -> set[str]:
    copies = (n for n in walk(launch.body) if isinstance(n, BulkCopy) and n.is_load)
    return {copy.dst.buffer.storage.name for copy in copies}


def _stored(stmt: Stmt) -> set[Buffer]:
    """Return the shared tiles that threads themselves write, which no engine fills."""
    return {
        a.buffer.storage
        for a in accesses(stmt)
        if a.mode is Mode.WRITE
        and a.buffer.storage.scope is Scope.SHARED
        and not isinstance(a.node, BulkCopy)
    }


@dataclass(slots=True)
class _Tracer:
    """Runs the control flow of one range of threads; of tiles it only notes who uses which."""

    names: dict[str, Value]
    warps: int
    expected: Mapping[Statement, list[int]]
    group: int = 0
    handed: frozenset[Buffer] = frozenset()
    watched: frozenset[str] = frozenset()
    values: dict[Var, int] = field(default_factory=dict)
    scalars: dict[Buffer, int] = field(default_factory=dict)
    settings: dict[Buffer, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    fills: dict[str, int] = field(default_factory=dict)
    seen: dict[Statement, list[int]] = field(default_factory=dict)
    products: int = 0
    turns: int = 0

    def run(self, stmt: Stmt) -> None:
        """Append the events of `stmt`."""
        match stmt:
            case Seq(body=body):
                for item in body:
                    self.run(item)
            case OnThreads(count=count, body=body):
                before, self.warps = self.warps, -(-count // WARP)
                self.run(body)
                self.warps = before
            case For(start=start, stop=stop, step=step):
                by = self.value(step)
                for k in range(self.value(start), self.value(stop), by):
                    self.values[stmt.var] = k
                    self.run(stmt.body)
            case Pipelined(start=start, stop=stop):
                for k in range(self.value(start), self.value(stop)):
                    self.values[stmt.var] = k
                    self.run(stmt.body)
            case If(cond=cond, then=then, otherwise=otherwise):
                taken = then if self.value(cond) else otherwise
                if taken is not None:
                    self.run(taken)
            case While(cond=cond, body=body):
                while self.value(cond):
                    self.run(body)
            case Let(var=var, value=value):
                self.values[var] = self.value(value)
            case Store(buffer=buffer) if buffer.scope is Scope.VAR:
                self.scalars[buffer] = self.value(stmt.value)
                self.settings[buffer] = self.settings.get(buffer, 0) + 1
            case Alloc():
                return
            case _:
                self.act(stmt)

    def act(self, stmt: Stmt) -> None:
        """Append the events of a statement without statements inside."""
        match stmt:
            case BarrierWait():
                self.events.append(Wait(self.slot(stmt.barrier), self.value(stmt.parity) & 1))
            case BarrierArrive(nbytes=nbytes):
                count = 1 if nbytes else self.warps
                self.events.append(Arrive(self.slot(stmt.barrier), count, nbytes))
            case BulkCopy(barrier=Region() as barrier):
                tile = self.tile(stmt.dst)
                number = self.fill(tile[0])
                self.events.append(Fill(tile, self.slot(barrier), _nbytes(stmt.dst), number))
            case Copy() | Parallel() if _stored(stmt) & self.handed:
                for version, stored in self.stores(stmt).items():
                    number = self.turn_number(version, stored)
                    self.events.append(Write((stored.name, self.value(version)), number))
            case Copy() | Parallel() if _stored(stmt):
                self.use(stmt)
                for own in _stored(stmt):
                    self.fill(own.name)
            case GroupOrder():
                self.turn(stmt)
            case WaitProducts(pending=pending):
                self.events.append(Settle(self.products, pending))
            case _:
                self.use(stmt)

    def turn(self, op: GroupOrder) -> None:
        """Append a turn: each half has a barrier that the other half arrives at."""
        goes_on = op.goes_on is None or bool(self.value(op.goes_on))
        mine, other = ("turn", self.group), ("turn", 1 - self.group)
        if op.step is Step.TAKE:
            self.events.append(Wait(mine, self.turns % 2))
            self.turns += 1
        elif (op.step is Step.GIVE and (self.group == 0 or goes_on)) or (
            op.step is Step.OFFER and self.group == 1 and goes_on
        ):
            self.events.append(Arrive(other, 1))

    def use(self, stmt: Stmt) -> None:
        lasts = None
        if isinstance(stmt, Gemm):
            lasts = self.products
            self.products += 1
        for tile in dict.fromkeys(self.read(stmt)):
            key = (stmt.span, type(stmt).__name__, tile[0])
            done = self.seen.setdefault(key, [])
            wanted = self.expected.get(key)
            done.append(self.fills.get(tile[0], 0) - 1)
            if wanted is not None and max(wanted) >= 0 and tile[0] in self.watched:
                self.events.append(Use(tile, wanted[len(done) - 1], lasts))
        if isinstance(stmt, Gemm) and stmt.wg_wait >= 0:
            self.events.append(Settle(self.products, stmt.wg_wait))

    def stores(self, stmt: Stmt) -> dict[Expr, Buffer]:
        """Return the tiles handed to others that a statement fills, by which version it is."""
        found: dict[Expr, Buffer] = {}
        for access in accesses(stmt):
            if access.mode is Mode.WRITE and access.buffer.storage in self.handed:
                node = access.node
                starts = node.indices if isinstance(node, Store) else access.region.starts  # type: ignore[union-attr]
                found.setdefault(as_expr(starts[0]), access.buffer.storage)
        return found

    def turn_number(self, version: Expr, tile: Buffer) -> int:
        """Return which fill of all a store makes: others fill the turns that this role skips.

        The scalar that says which version it is has been set once for each turn so far.
        """
        scalars = [n.buffer for n in walk(version) if isinstance(n, Load)]
        return self.settings[scalars[0]] - 1 if scalars else self.fill(tile.name)

    def fill(self, name: str) -> int:
        """Count a fill of a tile."""
        number = self.fills.get(name, 0)
        self.fills[name] = number + 1
        return number

    def read(self, stmt: Stmt) -> Iterator[Slot]:
        """Yield the versions of shared tiles that a statement reads."""
        for access in accesses(stmt):
            buffer = access.buffer
            if buffer.storage.scope is not Scope.SHARED or access.mode is Mode.WRITE:
                continue
            if access.region is not None:
                yield self.tile(access.region)
            elif isinstance(access.node, Load):
                yield buffer.storage.name, self.first(access.node.indices)

    def tile(self, region: Region) -> Slot:
        """Return the version that a region is in: its first index."""
        return region.buffer.storage.name, self.first(region.starts)

    def first(self, indices: tuple[Any, ...]) -> int:
        try:
            return self.value(indices[0])
        except InternalError:
            return 0

    def slot(self, barrier: Region) -> Slot:
        return barrier.buffer.name, self.value(barrier.starts[0])

    def value(self, extent: Extent) -> int:
        """Return the value of an integer expression.

        Raises
        ------
        InternalError
            If it depends on tensors or tiles.
        """
        known = static_value(extent)
        return self.evaluate(as_expr(extent)) if known is None else known

    def element(self, load: Load, known: Value) -> int:
        return known if isinstance(known, int) else known[self.value(load.indices[0])]

    def evaluate(self, expr: Expr) -> int:
        named: dict[Node, Node] = {}
        values: dict[Var, int] = dict(self.values)
        for node in walk(expr):
            if isinstance(node, Load) and node.buffer in self.scalars:
                named[node] = as_expr(self.scalars[node.buffer])
            elif isinstance(node, Load) and node.buffer.name in self.names:
                named[node] = as_expr(self.element(node, self.names[node.buffer.name]))
            elif isinstance(node, Var) and node.name in self.names:
                values.setdefault(node, cast(int, self.names[node.name]))
        plain = substitute(expr, named) if named else expr
        if not is_host_evaluable(plain, values):
            raise InternalError("a value depends on more than sizes", span=expr.span)
        return int(evaluate(plain, values))


def _nbytes(region: Region) -> int:
    total = region.buffer.dtype.bits
    for extent in region.extents:
        total *= static_value(extent) or 0
    return total // 8
