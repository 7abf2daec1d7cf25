"""From where to where in a program the contents of a tile matter."""

from __future__ import annotations

from dataclasses import field

from tile_core.analysis.first_access import FirstAccess, first_access, storages_named
from tile_core.analysis.gemms_in_flight import (
    ends_products,
    factors_in_memory,
    products_before,
    products_left,
)
from tile_core.analysis.memory_access import MemoryAccess, memory_accesses, own_accesses
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.stmt import For, If, OnThreads, Parallel, Pipelined, Seq, Stmt, While
from tile_core.ir.visitor import expressions_in, statements_in
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class LiveInterval:
    """Positions of the first and of the last statement between which a tile is alive."""

    first: int
    last: int

    def overlaps(self, other: LiveInterval) -> bool:
        """Whether both are alive somewhere."""
        return self.first <= other.last and other.first <= self.last


@dataclass(slots=True)
class _Walk:
    body: Stmt
    position: int = 0
    alive: dict[Buffer, LiveInterval] = field(default_factory=dict)
    flying: dict[Buffer, int] = field(default_factory=dict)


def live_intervals(
    body: Stmt, scopes: tuple[Scope, ...] = (Scope.SHARED,)
) -> dict[Buffer, LiveInterval]:
    """Return for each storage in `scopes` where in `body` it is alive.

    Statements without statements in them are numbered in program order. A tile is alive from
    its first access to its last. Where a loop's iteration may read what an earlier iteration left,
    it is alive in all of the loop; so it is to the end of the program where the last access is
    an asynchronous copy. What a product reads that is left in flight matters until a wait ends
    it: in all iterations of a loop around both. Tiles are in the order of their first accesses;
    what is never accessed is left out.
    """
    state = _Walk(body)
    _visit(body, state, scopes)
    for storage, position in state.flying.items():
        if state.alive[storage].last == position:
            _live(storage, LiveInterval(position, state.position), state)
    return state.alive


def _visit(stmt: Stmt, state: _Walk, scopes: tuple[Scope, ...]) -> None:
    match stmt:
        case Seq(body=body):
            before = state.position
            for item in body:
                _visit(item, state, scopes)
            for storage in _used_apart(stmt, scopes):
                if storage in state.alive:
                    _live(storage, LiveInterval(before, state.position), state)
        case If() | OnThreads():
            for cond in expressions_in(stmt):
                _note(memory_accesses(cond), state, scopes)
            for inner in statements_in(stmt):
                _visit(inner, state, scopes)
        case For() | Pipelined() | While():
            _visit_loop(stmt, state, scopes)
        case _:
            # Most statements name no tile of these scopes, which is soon seen.
            touches = any(storage.scope in scopes for storage in storages_named(stmt))
            _note(memory_accesses(stmt) if touches else (), state, scopes)
            if ends_products(stmt):
                here = LiveInterval(state.position - 1, state.position - 1)
                for storage in factors_in_memory(products_before(state.body, stmt)):
                    if storage.scope in scopes:
                        _live(storage, here, state)


def _used_apart(stmt: Seq, scopes: tuple[Scope, ...]) -> set[Buffer]:
    """Return the tiles of ranges of threads that run at the same time.

    One range may be ahead of another, so the order of the text says nothing about their tiles.
    A range that only issues bulk copies fills what others wait for: it is not counted.
    """
    ranges = [item for item in stmt.body if isinstance(item, OnThreads)]
    if len(ranges) < 2 or sum(_does_more_than_copy(r, scopes) for r in ranges) < 2:
        return set()
    return {s for part in ranges for s in storages_named(part) if s.scope in scopes}


def _does_more_than_copy(stmt: OnThreads, scopes: tuple[Scope, ...]) -> bool:
    return any(
        a.buffer.storage.scope in scopes and not isinstance(a.node, BulkCopy)
        for a in own_accesses(stmt.body)
    )


def _visit_loop(stmt: For | Pipelined | While, state: _Walk, scopes: tuple[Scope, ...]) -> None:
    for bound in expressions_in(stmt):
        _note(memory_accesses(bound), state, scopes)
    before, first = state.alive, state.position
    state.alive = {}
    _visit(stmt.body, state, scopes)
    whole = LiveInterval(first - 1, state.position)
    state.position += 1
    inside, state.alive = state.alive, before
    under_way = set(factors_in_memory(products_left(stmt.body)))
    for storage, extent in inside.items():
        # A tile that loops over elements fill shares its bytes at the price of a barrier an
        # iteration.
        carried = (
            isinstance(stmt, While)
            or storage in under_way
            or first_access(stmt.body, storage, Parallel) is FirstAccess.READ
        )
        _live(storage, whole if carried else extent, state)


def _note(found: tuple[MemoryAccess, ...], state: _Walk, scopes: tuple[Scope, ...]) -> None:
    here = LiveInterval(state.position, state.position)
    state.position += 1
    for touch in found:
        if touch.storage.scope in scopes:
            _live(touch.storage, here, state)
            if touch.is_async:
                state.flying[touch.storage] = here.last


def _live(storage: Buffer, extent: LiveInterval, state: _Walk) -> None:
    known = state.alive.get(storage, extent)
    first, last = min(known.first, extent.first), max(known.last, extent.last)
    state.alive[storage] = LiveInterval(first, last)
