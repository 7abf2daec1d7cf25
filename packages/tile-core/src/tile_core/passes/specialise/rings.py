"""Copies that other threads can make ahead, and the tiles that go round between both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Expr
from tile_core.ir.node import walk
from tile_core.ir.stmt import (
    AnnotateSafeValue,
    For,
    If,
    Launch,
    Pipelined,
    Seq,
    Stmt,
    While,
    flattened,
)
from tile_core.ops.copy import Copy
from tile_core.passes.liveness import is_surely_whole
from tile_core.passes.pipelines.instances import why_not_versioned
from tile_core.passes.ranges import Env
from tile_core.passes.specialise.bulk import why_not_bulk
from tile_core.passes.touches import touches


@dataclass(frozen=True, slots=True, eq=False)
class Ring:
    """Tiles that are filled and used up together, in turns.

    Parameters
    ----------
    copies
        What fills them: statements of `home`.
    home
        The sequence in which a round is filled and used.
    first, last
        Positions in `home` of the first and the last statement that reads them.
    count
        Rounds that may be filled ahead, each into a version of its own.
    """

    copies: tuple[Copy, ...]
    home: Seq
    first: int
    last: int
    count: int

    @property
    def tiles(self) -> tuple[Buffer, ...]:
        """The storages."""
        return tuple(copy.dst.buffer.storage for copy in self.copies)

    @property
    def nbytes(self) -> int:
        """Bytes that a round brings."""
        return sum(tile.nbytes or 0 for tile in self.tiles)


@dataclass(frozen=True, slots=True)
class Found:
    """Rings of a launch, and why other copies are none."""

    rings: tuple[Ring, ...]
    left: tuple[tuple[Copy, str], ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a copy stands."""

    copy: Copy
    home: Seq
    position: int
    loop: Stmt | None


def find_rings(launch: Launch, env: Env) -> Found:
    """Return the copies from tensors into shared tiles that can run ahead of their use.

    Only the copy writes its tile, all of it; only statements behind it, in the same sequence,
    read the tile; no statement of the launch writes the tensor. Copies in a pipelined loop have
    a version for each of its stages, others one. Copies of one sequence whose tiles are first
    and last read by the same statements share a ring.
    """
    safe_values: dict[Buffer, Expr] = {
        n.buffer: n.value for n in walk(launch.body) if isinstance(n, AnnotateSafeValue)
    }
    rings: list[Ring] = []
    left: list[tuple[Copy, str]] = []
    for place in _copies(launch.body, None):
        why = why_not_bulk(place.copy, env, safe_values) or _why_not_alone(place, launch)
        made = None if why else _ring(place)
        if isinstance(made, Ring):
            _add(made, rings)
        else:
            left.append((place.copy, why or made or ""))
    return Found(tuple(rings), tuple(left))


def _copies(stmt: Stmt, loop: Stmt | None, home: Seq | None = None) -> Iterator[_Place]:
    """Yield the copies into shared memory that stand in sequences, loops and branches."""
    match stmt:
        case Seq(body=body):
            for position, item in enumerate(body):
                if isinstance(item, Copy) and _is_load(item):
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


def _why_not_alone(place: _Place, launch: Launch) -> str | None:
    """Return who else has to do with the tile or the tensor."""
    tile, tensor = place.copy.dst.buffer.storage, place.copy.src.buffer.storage
    inside = set(walk(place.home))
    for access in accesses(launch.body):
        storage = access.buffer.storage
        if storage is tensor and access.mode is not Mode.READ:
            return f"the kernel writes {tensor.name!r} as well"
        if storage is not tile or access.node is place.copy:
            continue
        if access.mode is not Mode.READ:
            return f"{tile.name!r} is written by other statements too"
        if access.node not in inside:
            return f"{tile.name!r} is read outside of the loop or branch that fills it"
    if not any(is_surely_whole(t) for t in touches(place.copy) if t.storage is tile):
        return f"it does not fill all of {tile.name!r}"
    return None


def _ring(place: _Place) -> Ring | str:
    """Return the ring of one copy, or why it has none."""
    copy, home = place.copy, place.home
    tile = copy.dst.buffer.storage
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
        if why is not None:
            return why
    return Ring((copy,), home, readers[0], readers[-1], max(count, 1))


def _add(made: Ring, rings: list[Ring]) -> None:
    """Put a copy into a ring that goes round with it, or into one of its own."""
    for k, ring in enumerate(rings):
        same = (ring.first, ring.last, ring.count) == (made.first, made.last, made.count)
        if ring.home is made.home and same:
            rings[k] = Ring((*ring.copies, *made.copies), ring.home, ring.first, ring.last,
                            ring.count)  # fmt: skip
            return
    rings.append(made)
