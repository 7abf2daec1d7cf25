"""Fences between what threads touch in shared memory and engines that fill it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import accesses, effects_of
from tile_core.ir.intrinsics import Effect
from tile_core.ir.node import Node, contains, nodes_of, substitute
from tile_core.ir.stmt import (
    For,
    If,
    Kernel,
    Launch,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    While,
    flattened,
)
from tile_core.ir.visitor import statements_in
from tile_core.ops.async_copy import CopyWait
from tile_core.ops.bulk_copy import BulkCopy, BulkWait, FenceAsync
from tile_core.ops.control import Barrier, ClusterSync
from tile_core.ops.gemm import Gemm
from tile_core.ops.mbarrier import BarrierArrive, BarrierWait
from tile_core.ops.remote_copy import RemoteCopy
from tile_core.records import dataclass

_ORDERING = (
    *(BarrierArrive, BarrierWait, Barrier, ClusterSync),
    *(BulkCopy, BulkWait, CopyWait, RemoteCopy),
)
"""Operators that tell other threads or engines of what came before, or begin work of engines."""

_BLOCKS = (For, While, Pipelined, If, OnThreads)


def fence_async_writes(kernel: Kernel, is_asynchronous: Callable[[Gemm], bool]) -> Kernel:
    """Return `kernel` with fences behind what threads do with tiles that engines fill again.

    Before   wait full;  copy A_s, A_l;  arrive empty  (… wait empty;  bulk_copy A, A_s)
    After    wait full;  copy A_s, A_l;  fence_async;  arrive empty

    Barriers order what threads do with each other; an engine sees memory in a way of its own,
    and what it writes may overtake them. The threads that read or wrote fence, once for all
    that they do between two barriers, before they tell of it. Engines need no fence among each
    other. Source: PTX ISA, "Async proxy". Where an MMA `is_asynchronous`, an engine reads
    its factors in shared memory itself.
    """
    done: dict[Node, Node] = {}
    for launch in nodes_of(kernel.body, Launch):
        filled = filled_again(launch)
        if filled:
            places = _Fences(filled, is_asynchronous).behind(launch.body)
            done |= {p: Seq((p, FenceAsync(span=p.span)), span=p.span) for p in places}
    return substitute(kernel, done) if done else kernel


def filled_again(launch: Launch) -> frozenset[Buffer]:
    """Return the tiles that engines fill in loops: others have been touched by nobody before.

    A product that an engine was expected to compute, and threads do, is fenced by who lowers it.
    """
    loops = [*nodes_of(launch.body, For, While, Pipelined)]
    inside = [n for loop in loops for n in nodes_of(loop, BulkCopy, RemoteCopy)]
    return frozenset(n.dst.buffer.storage for n in inside if n.barrier is not None)


@dataclass(frozen=True, slots=True)
class _Fences:
    """Finds the places of fences in one launch, given the tiles that engines fill again."""

    filled: frozenset[Buffer]
    is_asynchronous: Callable[[Gemm], bool]

    def behind(self, stmt: Stmt) -> Iterator[Stmt]:
        """Yield the statements behind which a fence must stand."""
        if not isinstance(stmt, Seq):
            if not self._orders(stmt):
                yield from self._end_of((stmt,))
            elif isinstance(stmt, _BLOCKS):
                for inner in statements_in(stmt):
                    yield from self.behind(inner)
            return
        run: list[Stmt] = []
        for part in flattened(stmt):
            if self._orders(part):
                yield from self._end_of(run)
                yield from self.behind(part)
                run = []
            else:
                run.append(part)
        yield from self._end_of(run)

    def _end_of(self, run: Sequence[Stmt]) -> Iterator[Stmt]:
        """Yield the last statement that touches a tile, if no fence follows."""
        last: Stmt | None = None
        for part in run:
            if isinstance(part, FenceAsync):
                last = None
            elif self._touches(part) or isinstance(last, Let):
                last = part  # what follows a name must see it: no sequence is put around one
        if last is not None and not isinstance(last, Let):
            yield last

    def _touches(self, stmt: Stmt) -> bool:
        """Whether threads read or write a tile in `stmt`, which tells nobody of it."""
        if isinstance(stmt, Gemm) and self.is_asynchronous(stmt):
            return False
        return any(a.buffer.storage in self.filled for a in accesses(stmt))

    def _orders(self, stmt: Node) -> bool:
        """Whether other threads or engines are told of something within `stmt`."""
        if isinstance(stmt, OnThreads):
            return True  # fences belong to these threads
        if isinstance(stmt, Parallel):
            return False
        if contains(stmt, *_ORDERING):
            return True
        return bool(effects_of(stmt) & (Effect.STATE | Effect.BLOCK))
