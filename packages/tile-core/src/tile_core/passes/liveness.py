"""From where to where in a program the contents of a tile matter."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.effects import Mode
from tile_core.ir.node import walk
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    If,
    Leaf,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
    While,
)
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.passes.memory_accesses import MemoryAccess, memory_accesses
from tile_core.passes.products_in_flight import (
    ends_products,
    factors_in_memory,
    products_before,
    products_left,
)


class Meets(Enum):
    """How a statement first meets the contents a tile had before."""

    NOT = auto()  # it does not look at them, nor surely replaces them
    READS = auto()  # it may read them
    REPLACES = auto()  # it overwrites all of them first


@dataclass(frozen=True, slots=True)
class Stretch:
    """Positions of the first and of the last statement between which a tile is alive."""

    first: int
    last: int

    def meets(self, other: Stretch) -> bool:
        """Whether both are alive somewhere."""
        return self.first <= other.last and other.first <= self.last

    def united(self, other: Stretch) -> Stretch:
        """Return the shortest stretch that holds both."""
        return Stretch(min(self.first, other.first), max(self.last, other.last))

    def holds(self, other: Stretch) -> bool:
        """Whether all of `other` lies in this stretch."""
        return self.first <= other.first and other.last <= self.last


@dataclass(slots=True)
class _Walk:
    body: Stmt
    position: int = 0
    alive: dict[Buffer, Stretch] = field(default_factory=dict)
    flying: dict[Buffer, int] = field(default_factory=dict)


def live_extents(body: Stmt, scopes: tuple[Scope, ...] = (Scope.SHARED,)) -> dict[Buffer, Stretch]:
    """Return for each storage in `scopes` where in `body` it is alive.

    Statements without statements in them are numbered in program order. A tile is alive from
    its first access to its last. Where a loop's round may read what an earlier round left, it
    is alive in all of the loop; so it is to the end of the program where the last access is
    an asynchronous copy. What a product reads that is left in flight matters until a wait ends
    it: in all rounds of a loop around both.

    Returns
    -------
    In the order of first accesses; what is never accessed is left out.
    """
    state = _Walk(body)
    _visit(body, state, scopes)
    for storage, position in state.flying.items():
        if state.alive[storage].last == position:
            _live(storage, Stretch(position, state.position), state)
    return state.alive


def _visit(stmt: Stmt, state: _Walk, scopes: tuple[Scope, ...]) -> None:
    match stmt:
        case Seq(body=body):
            before = state.position
            for item in body:
                _visit(item, state, scopes)
            for storage in _used_apart(stmt, scopes):
                if storage in state.alive:
                    _live(storage, Stretch(before, state.position), state)
        case If(then=then, otherwise=otherwise):
            _note(memory_accesses(stmt.cond), state, scopes)
            _visit(then, state, scopes)
            if otherwise is not None:
                _visit(otherwise, state, scopes)
        case OnThreads(body=inner):
            _visit(inner, state, scopes)
        case For() | Pipelined() | While():
            _visit_loop(stmt, state, scopes)
        case _:
            _note(memory_accesses(stmt) if _may_touch(stmt, scopes) else (), state, scopes)
            if ends_products(stmt):
                here = Stretch(state.position - 1, state.position - 1)
                for storage in factors_in_memory(products_before(state.body, stmt)):
                    if storage.scope in scopes:
                        _live(storage, here, state)


def _used_apart(stmt: Seq, scopes: tuple[Scope, ...]) -> set[Buffer]:
    """Return the tiles of ranges of threads that run at the same time.

    One range may be ahead of another, so the order of the text says nothing about their tiles.
    A range that only lets engines copy fills what others wait for: it is not counted.
    """
    ranges = [item for item in stmt.body if isinstance(item, OnThreads)]
    if len(ranges) < 2 or sum(_does_more_than_copy(r, scopes) for r in ranges) < 2:
        return set()
    return {
        node.storage
        for part in ranges
        for node in walk(part)
        if isinstance(node, Buffer) and node.storage.scope in scopes
    }


def _does_more_than_copy(stmt: OnThreads, scopes: tuple[Scope, ...]) -> bool:
    return any(
        t.storage.scope in scopes and not isinstance(t.node, BulkCopy)
        for t in memory_accesses(stmt.body)
    )


def _may_touch(stmt: Stmt, scopes: tuple[Scope, ...]) -> bool:
    """Whether a statement names a tile of these scopes: most name none, which is soon seen."""
    return any(isinstance(n, Buffer) and n.storage.scope in scopes for n in walk(stmt))


def _visit_loop(stmt: For | Pipelined | While, state: _Walk, scopes: tuple[Scope, ...]) -> None:
    bounds = (stmt.cond,) if isinstance(stmt, While) else (stmt.start, stmt.stop)
    for bound in bounds:
        _note(memory_accesses(bound), state, scopes)
    before, first = state.alive, state.position
    state.alive = {}
    _visit(stmt.body, state, scopes)
    whole = Stretch(first - 1, state.position)
    state.position += 1
    inside, state.alive = state.alive, before
    under_way = set(factors_in_memory(products_left(stmt.body)))
    for storage, extent in inside.items():
        carried = (
            isinstance(stmt, While)
            or storage in under_way
            or meets(stmt.body, storage) is Meets.READS
        )
        _live(storage, whole if carried else extent, state)


def _note(found: tuple[MemoryAccess, ...], state: _Walk, scopes: tuple[Scope, ...]) -> None:
    here = Stretch(state.position, state.position)
    state.position += 1
    for touch in found:
        if touch.storage.scope in scopes:
            _live(touch.storage, here, state)
            if touch.is_async:
                state.flying[touch.storage] = here.last


def _live(storage: Buffer, extent: Stretch, state: _Walk) -> None:
    known = state.alive.get(storage)
    state.alive[storage] = extent if known is None else known.united(extent)


def meets(stmt: Stmt, storage: Buffer, without: Stmt | None = None) -> Meets:
    """Return how `stmt`, apart from a part `without`, first meets old contents of `storage`."""
    if stmt is without:
        return Meets.NOT
    match stmt:
        case Seq(body=body):
            for item in body:
                how = meets(item, storage, without)
                if how is not Meets.NOT:
                    return how
            return Meets.NOT
        case OnThreads(body=inside):
            return meets(inside, storage, without)
        case If(cond=cond, then=then, otherwise=otherwise):
            if _reads(memory_accesses(cond), storage):
                return Meets.READS
            branches = [meets(then, storage, without)]
            branches.append(Meets.NOT if otherwise is None else meets(otherwise, storage, without))
            if Meets.READS in branches:
                return Meets.READS
            return branches[0] if branches[0] is branches[1] else Meets.NOT
        case For() | Pipelined() | While():
            # A loop may have no round, and one that is left early replaces nothing.
            inner = meets(stmt.body, storage, without)
            bounds = (stmt.cond,) if isinstance(stmt, While) else (stmt.start, stmt.stop)
            if inner is Meets.READS or any(_reads(memory_accesses(b), storage) for b in bounds):
                return Meets.READS
            return inner if _runs(stmt) else Meets.NOT
        case Alloc(buffer=buffer) if buffer is storage:
            return Meets.REPLACES
    if not any(isinstance(n, Buffer) and n.storage is storage for n in walk(stmt)):
        return Meets.NOT
    found = memory_accesses(stmt)
    if _reads(found, storage):
        return Meets.READS
    return Meets.REPLACES if any(_covers(t, storage) for t in found) else Meets.NOT


def _runs(stmt: For | Pipelined | While) -> bool:
    """Whether the first round of a loop certainly runs to its end."""
    if isinstance(stmt, While) or any(isinstance(n, (Break, Continue)) for n in walk(stmt.body)):
        return False
    start, stop = static_value(stmt.start), static_value(stmt.stop)
    forward = isinstance(stmt, Pipelined) or (static_value(stmt.step) or 0) > 0
    return start is not None and stop is not None and forward and start < stop


def _reads(found: tuple[MemoryAccess, ...], storage: Buffer) -> bool:
    return any(t.storage is storage and t.mode is not Mode.WRITE for t in found)


def _covers(touch: MemoryAccess, storage: Buffer) -> bool:
    """Whether a write surely replaces every element."""
    if touch.buffer.storage is not storage or touch.mode is not Mode.WRITE:
        return False
    return is_surely_whole(touch)


def is_surely_whole(touch: MemoryAccess) -> bool:
    """Whether an operator's write replaces all elements of its buffer."""
    return isinstance(touch.node, Leaf) and all(
        side is not None and static_value(side[0]) == 0 and static_value(side[1]) == extent
        for side, extent in zip(touch.box, _numbers(touch.buffer), strict=True)
    )


def _numbers(buffer: Buffer) -> tuple[int | None, ...]:
    return tuple(static_value(e) for e in buffer.shape)


def flows_out(body: Stmt, loop: Stmt, storage: Buffer) -> bool:
    """Whether contents that `loop` left in `storage` may be read elsewhere in `body`.

    `loop` itself is taken to write whatever it reads.
    """
    return _after(body, loop, storage) is Meets.READS


def _after(stmt: Stmt, loop: Stmt, storage: Buffer) -> Meets | None:
    """Return how what follows `loop` in `stmt` meets the storage; None if it is not in there."""
    if stmt is loop:
        return Meets.NOT
    match stmt:
        case Seq(body=body):
            how: Meets | None = None
            for item in body:
                if how is None:
                    how = _after(item, loop, storage)
                elif how is Meets.NOT:
                    how = meets(item, storage)
            return how
        case OnThreads(body=inside):
            return _after(inside, loop, storage)
        case If(then=then, otherwise=otherwise):
            how = _after(then, loop, storage)
            if how is None and otherwise is not None:
                how = _after(otherwise, loop, storage)
            return how
        case For() | Pipelined() | While():
            how = _after(stmt.body, loop, storage)
            if how is not Meets.NOT:
                # Rounds that are cut short may leave what would replace the contents out.
                cut = any(isinstance(n, (Break, Continue)) for n in walk(stmt.body))
                return Meets.READS if how is Meets.REPLACES and cut else how
            again = meets(stmt.body, storage, without=loop)
            if isinstance(stmt, While) and _reads(memory_accesses(stmt.cond), storage):
                again = Meets.READS
            return Meets.READS if again is Meets.READS else Meets.NOT
    return None
