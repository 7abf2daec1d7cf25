"""Copies that other threads can make ahead, and the circular buffers between both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import TypeGuard

from tile_core.analysis.first_access import overwrites
from tile_core.analysis.memory_dependence import MemoryDependences
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import Mode, accesses, storages_read, storages_written
from tile_core.ir.expr import Expr
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.stmt import (
    AnnotateSafeValue,
    Launch,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    flattened,
)
from tile_core.ir.visitor import LOOPS, statements_in
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.operator import operators_in
from tile_core.passes.pipelines.stage_instances import require_versions
from tile_core.passes.warp_specialisation.async_fills import piece_of
from tile_core.passes.warp_specialisation.bulk_copies import (
    BulkCopyKind,
    bulk_way,
    require_aligned_versions,
)
from tile_core.passes.warp_specialisation.contiguous_copies import within_loops
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable

LANES = 32
"""Threads of a warp."""

GATHERED = "a loop gathers its elements"
"""Why the copy engine does not copy what a loop only moves."""

FEW_ELEMENTS = 256
"""Elements of a tile that a warp fills: eight for a lane, which loads all before it stores one."""


@dataclass(frozen=True, slots=True, eq=False)
class CircularBuffer:
    """Tiles that are filled and used together.

    The `copies` that fill them are statements of `home`, the sequence in which an iteration is
    filled and used: copies, all by the copy engine (`in_bulk`) or all by threads; among the latter
    are loops over the elements of a tile. `first` and `last` are the positions in `home` of the
    statements that read them. So many iterations as `count` may be filled ahead, each into a
    version of its own. Of the copies, those `contiguous` are one bulk 1-D copy each, and those
    `issued` by threads are asynchronous (see `piece_of`), in so many `pieces` for each lane of a
    warp. The async proxy is the copy engine, or asynchronous MMAs.
    """

    copies: tuple[Copy | Parallel, ...]
    home: Seq
    first: int
    last: int
    count: int
    in_bulk: bool = True
    contiguous: tuple[Copy | Parallel, ...] = ()
    issued: tuple[Copy | Parallel, ...] = ()
    pieces: int = 0
    is_read_by_async_proxy: bool = False

    @property
    def arrives_by_itself(self) -> bool:
        """Whether asynchronous copies signal consumers, not the threads that issued them.

        The async proxy sees what threads have fenced, and a fence comes behind the end of a copy.
        """
        return bool(self.issued) and not self.is_read_by_async_proxy

    @property
    def runs_ahead(self) -> bool:
        """Whether tiles are filled while others are used, and nobody holds them in registers."""
        return self.count > 1 and (self.in_bulk or bool(self.issued))

    @property
    def is_small(self) -> bool:
        """Whether a warp can fill each tile by way of registers."""
        return all(math.prod(tile.static_shape or ()) <= FEW_ELEMENTS for tile in self.tiles)

    @property
    def stored_nbytes(self) -> int:
        """Bytes that threads bring in each iteration by loads and stores."""
        by_hand = () if self.in_bulk else (c for c in self.copies if c not in self.issued)
        return sum(tile_of(c).nbytes or 0 for c in by_hand)

    @property
    def tiles(self) -> tuple[Buffer, ...]:
        """The storages."""
        return tuple(map(tile_of, self.copies))

    @property
    def nbytes(self) -> int:
        """Bytes that an iteration brings."""
        return sum(tile.nbytes or 0 for tile in self.tiles)


def tile_of(copy: Copy | Parallel) -> Buffer:
    """Return the storage that a copy into shared memory fills."""
    if isinstance(copy, Copy):
        return copy.dst.buffer.storage
    (tile,) = _shared_targets(copy)
    return tile


@dataclass(frozen=True, slots=True)
class CircularBuffers:
    """Circular buffers of a launch, and why other copies are none, or are made by threads."""

    buffers: tuple[CircularBuffer, ...]
    left: tuple[tuple[Copy | Parallel, str], ...]
    by_threads: tuple[tuple[Copy | Parallel, str], ...] = ()

    def in_bulk(self) -> CircularBuffers:
        """Return the circular buffers that the copy engine fills alone; the others are left too."""
        return self._only(tuple(circular for circular in self.buffers if circular.in_bulk))

    def with_small_tiles(self) -> CircularBuffers:
        """Return the same with those circular buffers of threads that are small."""
        return self._only(
            tuple(circular for circular in self.buffers if circular.in_bulk or circular.is_small)
        )

    def _only(self, circular_buffers: tuple[CircularBuffer, ...]) -> CircularBuffers:
        kept = {copy for circular in circular_buffers for copy in circular.copies}
        slow = tuple(item for item in self.by_threads if item[0] in kept)
        gone = tuple(item for item in self.by_threads if item[0] not in kept)
        return CircularBuffers(circular_buffers, (*self.left, *gone), slow)


@dataclass(frozen=True, slots=True)
class _CopySite:
    """Where a copy stands."""

    copy: Copy | Parallel
    home: Seq
    position: int
    loop: Stmt | None


def find_circular_buffers(launch: Launch, env: ConstraintSet) -> CircularBuffers:
    """Return the copies from tensors into shared tiles that can run ahead of their use.

    Only the copy writes its tile, all of it; only statements behind it, in the same sequence,
    read the tile; no statement of the launch writes the tensor. Copies in a pipelined loop have
    a version for each of its stages, others one. Copies of one sequence whose tiles are first
    and last read by the same statements share a circular buffer.

    Tiles of pipelined loops that the copy engine cannot fill, and those that a loop computes from
    tensors, have circular buffers that threads fill, where these can issue asynchronous copies,
    or where they are small.
    """
    safe_values: dict[Buffer, Expr] = {
        n.buffer: n.value for n in nodes_of(launch.body, AnnotateSafeValue)
    }
    circular_buffers: list[CircularBuffer] = []
    left: list[tuple[Copy | Parallel, str]] = []
    slow: list[tuple[Copy | Parallel, str]] = []
    env = within_loops(launch, env)
    for place in _copies(launch.body, None):
        copy = place.copy
        way, no_bulk, piece = None, None, None
        try:
            if not isinstance(copy, Copy):
                raise NotApplicable(GATHERED)
            way = bulk_way(copy, env, safe_values, launch)
        except NotApplicable as why:
            no_bulk, piece = why, piece_of(copy, env, safe_values)
        try:
            _require_sole_use(place, launch)
            if no_bulk is not None and not _is_for_warps(place, piece):
                raise no_bulk
            _add(_circular_buffer(place, way, piece), circular_buffers)
            if no_bulk is not None and (isinstance(copy, Copy) or piece is not None):
                slow.append((copy, no_bulk.reason))
        except NotApplicable as why:
            if isinstance(copy, Copy):
                left.append((copy, (no_bulk or why).reason))
    return CircularBuffers(tuple(circular_buffers), tuple(left), tuple(slow))


def _copies(stmt: Stmt, loop: Stmt | None, home: Seq | None = None) -> Iterator[_CopySite]:
    """Yield the copies into shared memory that stand in sequences, loops and branches."""
    if isinstance(stmt, (Parallel, OnThreads)):
        return
    loop = stmt if isinstance(stmt, LOOPS) else loop
    for position, item in enumerate(statements_in(stmt)):
        if isinstance(stmt, Seq) and (
            (isinstance(item, Copy) and _is_load(item)) or _is_computed(item)
        ):
            yield _CopySite(item, stmt, position, loop)
        else:
            yield from _copies(item, loop)


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


def _is_for_warps(place: _CopySite, piece: int | None) -> bool:
    """Whether a warp can fill a tile iterations ahead of its use.

    It may issue them in pieces of `piece` bytes; None if it loads and stores.
    """
    loop, tile = place.loop, tile_of(place.copy)
    if not isinstance(loop, Pipelined) or loop.num_stages < 2 or tile.static_shape is None:
        return False
    return piece is not None or math.prod(tile.static_shape) <= FEW_ELEMENTS


def _require_sole_use(place: _CopySite, launch: Launch) -> None:
    """Refuse a copy if others have to do with its tile or its tensors."""
    tile, inside = tile_of(place.copy), set(walk(place.home))
    own = set(walk(place.copy))
    tensors = {b for b in storages_read(place.copy) if b.scope is Scope.GLOBAL}
    if isinstance(place.copy, Copy):
        tensors = {place.copy.src.buffer.storage}
    for access in accesses(launch.body):
        storage = access.buffer.storage
        if storage in tensors and access.mode is not Mode.READ:
            raise NotApplicable(f"the kernel writes {storage.name!r} as well")
        if access.mode is not Mode.READ and any(_may_be_same(storage, t) for t in tensors):
            raise NotApplicable(
                f"the kernel writes {storage.name!r}, which may be at the same address"
            )
        if storage is not tile or access.node in own:
            continue
        if access.mode is not Mode.READ:
            raise NotApplicable(f"{tile.name!r} is written by other statements too")
        if access.node not in inside:
            raise NotApplicable(
                f"{tile.name!r} is read outside of the loop or branch that fills it"
            )
    if not overwrites(place.copy, tile):
        raise NotApplicable(f"it does not fill all of {tile.name!r}")


def _may_be_same(written: Buffer, tensor: Buffer) -> bool:
    """Whether two tensors may share bytes because the kernel computes the address of one."""
    computed = isinstance(written.origin, Expr) or isinstance(tensor.origin, Expr)
    return computed and MemoryDependences().share_bytes(written, tensor)


def _circular_buffer(
    place: _CopySite, way: BulkCopyKind | None, piece: int | None
) -> CircularBuffer:
    """Return the circular buffer of one copy, or raise `NotApplicable` with why it has none.

    The copy engine makes it in that `way`; None if threads do: they can issue it in pieces of
    `piece` bytes, None if they load and store.
    """
    copy, home = place.copy, place.home
    tile = tile_of(copy)
    readers = [
        k
        for k, item in enumerate(home.body)
        if item is not copy and any(a.buffer.storage is tile for a in accesses(item))
    ]
    if not readers:
        raise NotApplicable(f"nobody reads {tile.name!r}")
    if readers[0] < place.position:
        raise NotApplicable(f"{tile.name!r} is read before it is filled")
    count = place.loop.num_stages if isinstance(place.loop, Pipelined) else 1
    if count > 1:
        require_versions(flattened(home), tile)
        if way is BulkCopyKind.TENSOR:
            require_aligned_versions(math.prod(tile.static_shape or ()), tile)
    contiguous = (copy,) if way is BulkCopyKind.CONTIGUOUS else ()
    made = CircularBuffer(
        (copy,), home, readers[0], readers[-1], max(count, 1), way is not None, contiguous
    )
    if way is not None:
        return made
    return replace(
        made,
        issued=() if piece is None else (copy,),
        pieces=0 if piece is None else -(-(tile.nbytes or 0) // (piece * LANES)),
        is_read_by_async_proxy=any(_may_be_async_proxy(home.body[k], tile) for k in readers),
    )


def _may_be_async_proxy(stmt: Stmt, tile: Buffer) -> bool:
    """Whether the async proxy may read a tile: for an MMA, or on its way to a tensor."""
    return any(
        any(region.buffer.storage is tile for region in node.reads())
        and (
            isinstance(node, Gemm)
            or any(r.buffer.scope is not Scope.FRAGMENT for r in node.writes())
        )
        for node in operators_in(stmt)
    )


_PLACE = attrgetter("home", "first", "last", "count", "in_bulk")


def _add(made: CircularBuffer, circular_buffers: list[CircularBuffer]) -> None:
    """Put a copy into a circular buffer with the same readers, or into one of its own."""
    for k, circular in enumerate(circular_buffers):
        if _PLACE(circular) == _PLACE(made):
            circular_buffers[k] = replace(
                circular,
                copies=(*circular.copies, *made.copies),
                contiguous=(*circular.contiguous, *made.contiguous),
                issued=(*circular.issued, *made.issued),
                pieces=circular.pieces + made.pieces,
                is_read_by_async_proxy=circular.is_read_by_async_proxy
                or made.is_read_by_async_proxy,
            )
            return
    circular_buffers.append(made)
