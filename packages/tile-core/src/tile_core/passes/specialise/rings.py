"""Copies that other threads can make ahead, and the tiles that go round between both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import Mode, accesses, storages_read, storages_written
from tile_core.ir.expr import Expr
from tile_core.ir.node import walk
from tile_core.ir.stmt import (
    AnnotateSafeValue,
    For,
    If,
    Launch,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    While,
    flattened,
)
from tile_core.ops.copy import Copy
from tile_core.passes.liveness import is_surely_whole
from tile_core.passes.overlap.rewritten import is_rewritten
from tile_core.passes.pipelines.instances import why_not_versioned
from tile_core.passes.ranges import Env
from tile_core.passes.specialise.bulk import Way, bulk_way, why_not_versions
from tile_core.passes.specialise.side_by_side import within_loops
from tile_core.passes.touches import touches

FEW_ELEMENTS = 256
"""Elements of a tile that a warp fills: eight for a lane, which loads all before it stores one."""


@dataclass(frozen=True, slots=True, eq=False)
class Ring:
    """Tiles that are filled and used up together, in turns.

    Parameters
    ----------
    copies
        What fills them: statements of `home`. Copies, all by the engine or all by threads; among
        the latter are loops over the elements of a tile.
    home
        The sequence in which a round is filled and used.
    first, last
        Positions in `home` of the first and the last statement that reads them.
    count
        Rounds that may be filled ahead, each into a version of its own.
    in_bulk
        Whether the engine copies.
    stretches
        Those among `copies` that the engine makes as one stretch of bytes.
    """

    copies: tuple[Copy | Parallel, ...]
    home: Seq
    first: int
    last: int
    count: int
    in_bulk: bool = True
    stretches: tuple[Copy | Parallel, ...] = ()

    @property
    def tiles(self) -> tuple[Buffer, ...]:
        """The storages."""
        return tuple(map(tile_of, self.copies))

    @property
    def nbytes(self) -> int:
        """Bytes that a round brings."""
        return sum(tile.nbytes or 0 for tile in self.tiles)


def tile_of(copy: Copy | Parallel) -> Buffer:
    """Return the storage that a copy into shared memory fills."""
    if isinstance(copy, Copy):
        return copy.dst.buffer.storage
    (tile,) = _shared_targets(copy)
    return tile


@dataclass(frozen=True, slots=True)
class Found:
    """Rings of a launch, and why other copies are none, or are not the engine's."""

    rings: tuple[Ring, ...]
    left: tuple[tuple[Copy, str], ...]
    by_threads: tuple[tuple[Copy, str], ...] = ()

    def in_bulk(self) -> Found:
        """Return the rings that the engine fills alone; the others are left too."""
        rings = tuple(ring for ring in self.rings if ring.in_bulk)
        return Found(rings, (*self.left, *self.by_threads))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a copy stands."""

    copy: Copy | Parallel
    home: Seq
    position: int
    loop: Stmt | None


def find_rings(launch: Launch, env: Env) -> Found:
    """Return the copies from tensors into shared tiles that can run ahead of their use.

    Only the copy writes its tile, all of it; only statements behind it, in the same sequence,
    read the tile; no statement of the launch writes the tensor. Copies in a pipelined loop have
    a version for each of its stages, others one. Copies of one sequence whose tiles are first
    and last read by the same statements share a ring.

    Small tiles of pipelined loops that the engine cannot fill, and those that a loop computes
    from tensors, have rings that threads fill.
    """
    safe_values: dict[Buffer, Expr] = {
        n.buffer: n.value for n in walk(launch.body) if isinstance(n, AnnotateSafeValue)
    }
    rings: list[Ring] = []
    left: list[tuple[Copy, str]] = []
    slow: list[tuple[Copy, str]] = []
    env = within_loops(launch, env)
    for place in _copies(launch.body, None):
        copy = place.copy
        apart = _why_not_alone(place, launch)
        way = bulk_way(copy, env, safe_values, launch) if isinstance(copy, Copy) else "computed"
        bulk = None if isinstance(way, Way) else way
        by_threads = bulk is not None and _is_small(place)
        why = apart or (None if by_threads else bulk)
        made = None if why else _ring(place, way if isinstance(way, Way) else None)
        if isinstance(made, Ring):
            _add(made, rings)
            if isinstance(copy, Copy) and bulk is not None:
                slow.append((copy, bulk))
        elif isinstance(copy, Copy):
            left.append((copy, bulk or why or str(made)))
    return Found(tuple(rings), tuple(left), tuple(slow))


def _copies(stmt: Stmt, loop: Stmt | None, home: Seq | None = None) -> Iterator[_Place]:
    """Yield the copies into shared memory that stand in sequences, loops and branches."""
    match stmt:
        case Seq(body=body):
            for position, item in enumerate(body):
                if (isinstance(item, Copy) and _is_load(item)) or _is_computed(item):
                    yield _Place(item, stmt, position, loop)
                else:
                    yield from _copies(item, loop)
        case For(body=body) | Pipelined(body=body) | While(body=body):
            yield from _copies(body, stmt)
        case If(then=then, otherwise=otherwise):
            yield from _copies(then, loop)
            if otherwise is not None:
                yield from _copies(otherwise, loop)


def _is_load(copy: Copy) -> bool:
    return copy.src.buffer.scope is Scope.GLOBAL and copy.dst.buffer.scope is Scope.SHARED


def _shared_targets(stmt: Stmt) -> set[Buffer]:
    return {b for b in storages_written(stmt) if b.scope is Scope.SHARED}


def _is_computed(stmt: Stmt) -> TypeGuard[Parallel]:
    """Whether a loop fills a shared tile with what it computes from tensors and scalars."""
    if not isinstance(stmt, Parallel) or len(_shared_targets(stmt)) != 1:
        return False
    scopes = {b.scope for b in storages_read(stmt)} | {b.scope for b in storages_written(stmt)}
    return scopes <= {Scope.SHARED, Scope.GLOBAL, Scope.VAR} and not (
        _shared_targets(stmt) & storages_read(stmt).keys()
    )


def _is_small(place: _Place) -> bool:
    """Whether a warp can fill a tile beside the engine, rounds ahead of its use."""
    loop, tile = place.loop, tile_of(place.copy)
    ahead = isinstance(loop, Pipelined) and loop.num_stages > 1
    return ahead and tile.static_shape is not None and math.prod(tile.static_shape) <= FEW_ELEMENTS


def _why_not_alone(place: _Place, launch: Launch) -> str | None:
    """Return who else has to do with the tile or the tensors."""
    tile, inside = tile_of(place.copy), set(walk(place.home))
    own = set(walk(place.copy))
    tensors = {b for b in storages_read(place.copy) if b.scope is Scope.GLOBAL}
    if isinstance(place.copy, Copy):
        tensors = {place.copy.src.buffer.storage}
    for access in accesses(launch.body):
        storage = access.buffer.storage
        if storage in tensors and access.mode is not Mode.READ:
            return f"the kernel writes {storage.name!r} as well"
        if storage is not tile or access.node in own:
            continue
        if access.mode is not Mode.READ:
            return f"{tile.name!r} is written by other statements too"
        if access.node not in inside:
            return f"{tile.name!r} is read outside of the loop or branch that fills it"
    if isinstance(place.copy, Parallel):
        whole = is_rewritten((place.copy,), tile)
    else:
        whole = any(is_surely_whole(t) for t in touches(place.copy) if t.storage is tile)
    if not whole:
        return f"it does not fill all of {tile.name!r}"
    return None


def _ring(place: _Place, way: Way | None) -> Ring | str:
    """Return the ring of one copy, or why it has none.

    Parameters
    ----------
    way
        How the engine makes it, None if threads do.
    """
    copy, home = place.copy, place.home
    tile = tile_of(copy)
    readers = [
        k
        for k, item in enumerate(home.body)
        if item is not copy and any(a.buffer.storage is tile for a in accesses(item))
    ]
    if not readers:
        return f"nobody reads {tile.name!r}"
    if readers[0] < place.position:
        return f"{tile.name!r} is read before it is filled"
    count = place.loop.num_stages if isinstance(place.loop, Pipelined) else 1
    if count > 1:
        why = why_not_versioned(flattened(home), tile)
        if why is None and way is Way.BOXES:
            why = why_not_versions(math.prod(tile.static_shape or ()), tile)
        if why is not None:
            return why
    stretches = (copy,) if way is Way.STRETCH else ()
    last = readers[-1]
    return Ring((copy,), home, readers[0], last, max(count, 1), way is not None, stretches)


def _add(made: Ring, rings: list[Ring]) -> None:
    """Put a copy into a ring that goes round with it, or into one of its own."""
    for k, ring in enumerate(rings):
        same = (ring.first, ring.last, ring.count) == (made.first, made.last, made.count)
        if ring.home is made.home and same and ring.in_bulk is made.in_bulk:
            stretches = (*ring.stretches, *made.stretches)
            rings[k] = replace(ring, copies=(*ring.copies, *made.copies), stretches=stretches)
            return
    rings.append(made)
