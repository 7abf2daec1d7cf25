"""Results of matrix products on their way to tensors: rows are put together in shared memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set

from tile_core.analysis.liveness import live_intervals
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.effects import storages_read, storages_written
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Alloc, Kernel, Launch, Leaf, Parallel, Seq, Stmt
from tile_core.ir.visitor import map_launches
from tile_core.machine import SimtMachine
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.parallel_form import is_element_wise
from tile_core.passes.allocate_storage import TileAllocation, alignment_of, allocate_storage
from tile_core.passes.register_estimate import registers_wanted
from tile_core.records import dataclass, replace
from tile_core.remarks import remark

CHUNK = 16
"""Bytes that one thread stores at once; a row of a staged tile has a whole number of them."""

SECTOR = 32
"""Bytes that one transaction of global memory moves: shorter rows gain nothing."""


def stage_epilogues(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with the results of products stored by way of shared memory.

    Before   for k < 16: …; gemm A_s, B_s, sums
             copy sums, C[by*128:+128, bx*128:+128]
    After    for k < 16: …; gemm A_s, B_s, sums
             alloc sums_rows shared (128, 128) float16
             copy sums, sums_rows;  copy sums_rows, C[by*128:+128, bx*128:+128]

    Matrix instructions leave pairs of neighbours in each thread, and four threads beside each
    other. Of 16-bit elements these are 16 bytes of each of 8 rows: half of the 32-byte sectors
    that a store touches. From shared memory threads read 16 bytes each, whole rows a few at a
    time, and store them so. Elements are converted on their way in. Pairs of 32-bit elements
    fill sectors by themselves: those stores stay as they are, as do those for which the user
    has wishes of their own, and tiles whose rows are no whole number of 16 bytes.

    The new tile is alive for two statements; it may take the place of factors that are no
    longer needed. A store stays as it is if the block would need more shared memory than it
    may have, or if fewer blocks would run at once on a multiprocessor, for their shared
    memory, than run without it. That threads and registers admit no more anyway is taken into
    account, see `registers_wanted`.
    """
    return map_launches(kernel, lambda launch: _staged(launch, machine))


def _staged(launch: Launch, machine: SimtMachine) -> Launch:
    stores = [n for n in nodes_of(launch.body, Copy) if _is_narrow_store(n)]
    results = _results(launch.body) if stores else set()
    tiles = {op: _tile(op) for op in stores if op.src.buffer.storage in results}
    if not tiles:
        return launch
    staged = _through(launch, tiles)
    room = _SharedMemoryBudget.of(launch, staged, set(tiles.values()), machine)
    if room.suits(set(tiles.values())):
        return staged
    done: dict[Copy, Buffer] = {}
    for op, tile in tiles.items():
        more = {*done.values(), tile}
        if room.suits(more):
            done[op] = tile
        else:
            remark("missed", "stage_epilogues", room.refusal(more, op), op.span)
    return _through(launch, done)


def _is_narrow_store(op: Copy) -> bool:
    """Whether a copy brings rows of short elements from registers to a tensor."""
    source, bits = op.src, op.dst.buffer.dtype.bits
    extents = source.static_extents
    if source.buffer.scope is not Scope.FRAGMENT or not op.dst.buffer.scope.is_global:
        return False
    if op.coalesced_width is not None or op.loop_layout is not None or op.prefer_instruction:
        return False
    if extents is None or len(extents) < 2 or source.is_element or bits not in (8, 16):
        return False
    row = extents[-1] * bits // 8
    pairs_up = source.is_whole or not op.dst.is_whole
    return pairs_up and row >= SECTOR and row % CHUNK == 0 and math.prod(extents[:-1]) > 1


def _results(body: Stmt) -> set[Buffer]:
    """Return the sums of products, and the tiles that are computed from them by elements."""
    products = nodes_of(body, Gemm)
    found = {p.c.buffer.storage for p in products if p.c.buffer.scope is Scope.FRAGMENT}
    loops = [
        n for n in nodes_of(body, Leaf, Parallel) if isinstance(n, Parallel) or is_element_wise(n)
    ]
    flows = [(_fragments(storages_read(n)), _fragments(storages_written(n))) for n in loops]
    before = -1
    while found and len(found) > before:
        before = len(found)
        for read, written in flows:
            shapes = {b.static_shape for b in read & found}
            found |= {b for b in written if b.static_shape in shapes}
    return found


def _fragments(storages: Iterable[Buffer]) -> set[Buffer]:
    return {b for b in storages if b.scope is Scope.FRAGMENT}


def _tile(op: Copy) -> Buffer:
    extents = op.src.static_extents or ()
    name = f"{op.src.buffer.name}_rows"
    return Buffer(name, extents, op.dst.buffer.dtype, Scope.SHARED, span=op.span)


def _through(launch: Launch, tiles: Mapping[Copy, Buffer]) -> Launch:
    """Return `launch` with copies in two steps."""
    steps: dict[Node, Node] = {}
    for op, tile in tiles.items():
        there = replace(op, dst=whole(tile))
        back = replace(op, src=whole(tile))
        steps[op] = Seq((Alloc(tile, span=op.span), there, back), span=op.span)
    return substitute(launch, steps) if steps else launch


@dataclass(frozen=True, slots=True)
class _SharedMemoryBudget:
    """How much shared memory a block may need for the sake of its stores.

    The `tiles` are all that want a place in shared memory, the rows of results among them, as far
    as they are known before layouts are; without any rows the block needs so many bytes as
    `before`. As many blocks as the `least` must be able to run at once; 1 where nobody knows how
    many can.
    """

    machine: SimtMachine
    tiles: Sequence[TileAllocation]
    rows: Set[Buffer]
    before: int
    least: int = 1

    @classmethod
    def of(
        cls, launch: Launch, staged: Launch, rows: Set[Buffer], machine: SimtMachine
    ) -> _SharedMemoryBudget:
        """Return what a program leaves, and the one in which all stores are staged."""
        tiles = [
            TileAllocation(storage, storage.nbytes or 0, alive, alignment_of(storage.nbytes or 0))
            for storage, alive in live_intervals(staged.body).items()
        ]
        _, before = allocate_storage([tile for tile in tiles if tile.storage not in rows])
        room = cls(machine, tiles, rows, before)
        limits = machine.multiprocessor
        if limits is None:
            return room
        threads = math.prod(launch.threads)
        owned = min(registers_wanted(launch, threads), machine.registers)
        most = (limits.threads // threads, limits.registers // (owned * threads), limits.blocks)
        return replace(room, least=min(*most, room.blocks(before)))

    def needed(self, rows: Set[Buffer]) -> int:
        """Return the bytes of a block that has some of the rows of results in shared memory."""
        absent = self.rows - rows
        return allocate_storage([tile for tile in self.tiles if tile.storage not in absent])[1]

    def blocks(self, nbytes: int) -> int:
        """Return how many blocks the shared memory of a multiprocessor is enough for."""
        limits = self.machine.multiprocessor
        if limits is None:
            return 1
        return limits.shared_bytes // max(1, nbytes + limits.reserved_bytes)

    def suits(self, rows: Set[Buffer]) -> bool:
        """Whether as many blocks run at once as must."""
        needed = self.needed(rows)
        if needed <= self.before:
            return True
        return needed <= self.machine.shared_bytes and self.blocks(needed) >= self.least

    def refusal(self, rows: Set[Buffer], op: Copy) -> str:
        """Return why a store is left as it is."""
        needed = self.needed(rows)
        stored = f"{op.src.buffer.name!r} is stored from registers"
        if needed > self.machine.shared_bytes:
            return (
                f"{stored}: with its rows in shared memory the block would need {needed} bytes, "
                f"and {self.machine.name} gives it {self.machine.shared_bytes}"
            )
        return (
            f"{stored}: with its rows in shared memory the block would need {needed} bytes "
            f"instead of {self.before}, and {self.blocks(needed)} of them could run at once "
            f"instead of {self.least}"
        )
