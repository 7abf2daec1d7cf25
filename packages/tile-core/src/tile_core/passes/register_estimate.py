"""How many registers a thread will need, before anybody has given out any."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tile_core.analysis.first_access import FirstAccess, first_access
from tile_core.analysis.liveness import live_intervals
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.node import analysis, nodes_of
from tile_core.ir.stmt import Alloc, Hint, Launch, Parallel, Pipelined, Stmt
from tile_core.ops.gemm import Gemm

OTHER_REGISTERS = 64
"""What a thread needs beside its tiles, roughly: addresses, and parts of the operands."""

TOGETHER = "min_blocks_per_sm"
"""Hint: how many blocks shall find registers on one multiprocessor."""


def registers_wanted(launch: Launch, threads: int) -> int:
    """Return the registers of each of `threads` threads that share the tiles of a launch."""
    tiles = (n.buffer for n in nodes_of(launch.body, Alloc))
    nbytes = sum(b.nbytes or 0 for b in tiles if b.scope is Scope.FRAGMENT)
    return nbytes // 4 // threads + OTHER_REGISTERS


def registers_held(body: Stmt, threads: int) -> int:
    """Return the registers in which a thread holds tiles where most of them matter.

    What a statement reads for the last time makes room for what it writes: most of them go
    through their tiles element by element.
    """
    alive = live_intervals(body, (Scope.FRAGMENT,))
    most = 0
    for here in {p for extent in alive.values() for p in (extent.first, extent.last)}:
        before = (b for b, e in alive.items() if e.first < here <= e.last)
        behind = (b for b, e in alive.items() if e.first <= here < e.last)
        most = max(most, _nbytes(before), _nbytes(behind))
    return most // 4 // threads


def second_versions(body: Stmt, threads: int) -> int:
    """Return the registers of a thread for one more of what iterations make for their products.

    So many more may be needed where products of two iterations are in flight at a time: for factors
    in registers, and for accumulators that begin with zero. Where an iteration has several
    products, those that others need are over by then.
    """
    return _nbytes(set(_made_anew(body))) // 4 // threads


@analysis
def blocks_together(launch: Launch) -> int | None:
    """Return how many blocks shall find registers on one multiprocessor, if anybody has said."""
    for node in nodes_of(launch.body, Hint):
        if node.name == TOGETHER:
            return int(node.values[0])
    return None


def threads_together(launch: Launch) -> int:
    """Return how many threads share the registers of a multiprocessor, as far as is known."""
    return math.prod(launch.threads) * (blocks_together(launch) or 1)


def _made_anew(body: Stmt) -> Iterator[Buffer]:
    for loop in (n for n in nodes_of(body, Pipelined) if _has_iterations(n)):
        products = [*nodes_of(loop.body, Gemm)]
        tiles = {p.a.buffer.storage for p in products}
        if len(products) == 1:
            tiles.add(products[0].c.buffer.storage)
        for tile in tiles:
            if tile.scope is Scope.FRAGMENT and (
                first_access(loop.body, tile, Parallel) is FirstAccess.OVERWRITE
            ):
                yield tile


def _has_iterations(loop: Pipelined) -> bool:
    """Whether a loop may have more than one iteration."""
    start, stop = static_value(loop.start), static_value(loop.stop)
    return start is None or stop is None or stop - start > 1


def _nbytes(tiles: Iterator[Buffer] | set[Buffer]) -> int:
    return sum(b.nbytes or 0 for b in tiles)
