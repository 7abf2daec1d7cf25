"""Free choices: for tiles that belong together, the cheapest of what each loop proposes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tile_core.errors import LayoutConflict, LayoutError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.node import Node
from tile_core.layout import Fragment
from tile_core.layout.index_tables import distinct
from tile_core.layout.loop_layout import LoopLayout
from tile_core.layout.mixed_radix import row_major_position
from tile_core.layout.preimages import reduced_fragment
from tile_core.ops.operator import TileOperator
from tile_core.ops.reduce import Reduce
from tile_core.ops.rule import InferLevel
from tile_core.passes.inference.inference_state import NOBODY, Layouts
from tile_core.passes.inference.loop_layouts import chooser_of
from tile_core.passes.inference.view_layouts import Place
from tile_core.passes.layout_report import Reason
from tile_core.records import dataclass

MOST_ROOTS = 8
"""Members of a group that are tried as the one that others follow."""

EXCHANGE = 32
"""What a way through shared memory costs beyond the accesses there."""

SECTOR_BITS = 256
"""What one transaction of global memory moves."""


@dataclass(frozen=True, slots=True)
class Members:
    """Participants of inference, and who touches each storage."""

    nodes: tuple[Node, ...]
    askers: Mapping[Buffer, Sequence[Node]]

    def spread(self, layouts: Layouts, news: Iterable[Buffer], level: InferLevel) -> None:
        """Let what became known become known to all whom it concerns."""
        woken = deque(u for b in news for u in self.askers.get(b, ()))
        while woken:
            more = layouts.learn(woken.popleft(), level)
            woken.extend(u for b in more for u in self.askers.get(b, ()))


def choose_freely(layouts: Layouts, members: Members) -> None:
    """Give a layout to every register tile that is still open.

    Tiles are connected if a loop or an operator touches both. In each group of connected
    tiles every member in turn proposes its own layout, the others follow; of the outcomes
    without conflict the cheapest is taken, and among equals the first. Where all end in
    conflict every thread holds everything.
    """
    for group in _groups(layouts, members):
        roots = sorted(
            (n for n in group if layouts.is_open(n)), key=lambda n: _eagerness(layouts, n)
        )
        tiles = _open_tiles(layouts, group)
        before = _Attempt.of(layouts, math.inf)
        outcomes: list[_Attempt] = []
        for root in [*roots[:MOST_ROOTS], None]:
            if outcomes and (root is None or _is_known_outcome(layouts, root, outcomes)):
                continue
            try:
                _attempt(layouts, members, group, root)
                cost = _cost(layouts, group, tiles) + _widening(layouts, before)
                outcomes.append(_Attempt.of(layouts, cost))
            except (LayoutConflict, LayoutError):
                pass
            before.restore(layouts)
        if outcomes:
            min(outcomes, key=lambda outcome: outcome.cost).restore(layouts)
        else:
            _give_to_all(layouts, tiles)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The layouts that an attempt ended with, and what they cost."""

    cost: float
    known: dict[Buffer, Place]
    reasons: dict[Buffer, Reason]

    @classmethod
    def of(cls, layouts: Layouts, cost: float) -> _Attempt:
        """Return what is known now."""
        return cls(cost, dict(layouts.known), dict(layouts.reasons))

    def restore(self, layouts: Layouts) -> None:
        """Make this what is known."""
        layouts.known, layouts.reasons = dict(self.known), dict(self.reasons)
        layouts.loops.clear()


def _is_known_outcome(layouts: Layouts, root: Node, outcomes: list[_Attempt]) -> bool:
    """Whether an attempt already ended with what `root` would begin with."""
    nest = layouts.found.nests.get(root)
    choice = None if nest is None else chooser_of(layouts).choose(nest, free=True)
    if choice is None:
        return False
    return any(
        all(o.known.get(b) == held for b, held in choice.implied.items() if b.storage is b)
        for o in outcomes
    )


def _groups(layouts: Layouts, members: Members) -> list[list[Node]]:
    """Return the members that touch open tiles, connected ones together, in program order."""
    group_of: dict[Node, int] = {}
    owner: dict[Buffer, int] = {}
    merged: dict[int, int] = {}

    def root(number: int) -> int:
        while merged[number] != number:
            number = merged[number]
        return number

    for node in members.nodes:
        if not layouts.is_open(node):
            continue
        number = merged[len(merged)] = len(merged)
        group_of[node] = number
        for tile in _tiles(layouts, node):
            if tile in layouts.known:
                continue
            if tile in owner:
                merged[root(owner[tile])] = root(number)
            owner[tile] = number
    groups: dict[int, list[Node]] = {}
    for node, number in group_of.items():
        groups.setdefault(root(number), []).append(node)
    return list(groups.values())


def _tiles(layouts: Layouts, node: Node) -> tuple[Buffer, ...]:
    nest = layouts.found.nests.get(node)
    if nest is not None:
        return nest.tiles
    buffers = node.buffers() if isinstance(node, TileOperator) else ()
    return tuple(b.storage for b in buffers if b.scope is Scope.FRAGMENT)


def _eagerness(layouts: Layouts, node: Node) -> int:
    """Return the place in the order of trials: who accesses memory knows best."""
    nest = layouts.found.nests.get(node)
    if nest is None:
        return 2
    if any(b.scope.is_global for b, _ in nest.memory):
        return 0
    return 1 if nest.memory else 2


def _attempt(layouts: Layouts, members: Members, group: list[Node], root: Node | None) -> None:
    if root is not None:
        members.spread(layouts, layouts.learn(root, InferLevel.FREE), InferLevel.COMMON)
    for node in group:
        if root is not None and layouts.is_open(node):
            members.spread(layouts, layouts.learn(node, InferLevel.FREE), InferLevel.COMMON)
    for tile in sorted(_open_tiles(layouts, group), key=_size, reverse=True):
        if tile not in layouts.known:
            settled = layouts.settle(tile, _of_itself(layouts, tile), NOBODY)
            members.spread(layouts, [tile] if settled else [], InferLevel.COMMON)


def _of_itself(layouts: Layouts, tile: Buffer) -> Fragment:
    """Return the layout of a tile that follows from nothing but its shape."""
    lanes = max(1, 128 // max(8, tile.dtype.bits))
    threads = layouts.found.threads.get(tile, 1)
    return layouts.algebra.plan(tile.static_shape or (), threads, lanes).fragment


def _open_tiles(layouts: Layouts, group: Iterable[Node]) -> list[Buffer]:
    tiles = dict.fromkeys(tile for node in group for tile in _tiles(layouts, node))
    return [t for t in tiles if t not in layouts.known and t.static_shape is not None]


def _size(tile: Buffer) -> int:
    return math.prod(tile.static_shape or ())


def _give_to_all(layouts: Layouts, tiles: list[Buffer]) -> None:
    """Let every thread hold what no other layout was found for."""
    for tile in tiles:
        if tile not in layouts.known:
            threads = layouts.found.threads.get(tile, 1)
            everyone = layouts.algebra.everyone(tile.static_shape or (), threads)
            layouts.settle(tile, everyone, NOBODY)


def _cost(layouts: Layouts, group: list[Node], tiles: list[Buffer]) -> float:
    """Return registers of a thread, in words, and transactions of global memory per warp.

    What goes through shared memory costs as much as its elements, and a barrier. It is a
    `LayoutConflict` if a loop of the group cannot run.
    """
    total = 0.0
    for tile in tiles:
        held = layouts.known[tile]
        if isinstance(held, Fragment):
            total += held.slots * max(8, tile.dtype.bits) / 32
    for node in group:
        loop = layouts.loop_of(node)
        nest = layouts.found.nests.get(node)
        if nest is not None and loop is None:
            total += EXCHANGE + 2 * math.prod(nest.extents) / nest.threads
        elif nest is not None and loop is not None:
            tensors = (b for b, _ in nest.memory if b.scope.is_global)
            warp = 1 if layouts.machine is None else layouts.machine.warp_size
            total += sum(_transactions(loop, b.dtype.bits, warp) for b in tensors)
        elif isinstance(node, Reduce) and _goes_through_memory(layouts, node):
            total += EXCHANGE + math.prod(node.src.static_extents or ())
    return total


def _widening(layouts: Layouts, before: _Attempt) -> float:
    """Return registers of a thread, in words, by which tiles were widened that had a layout."""
    total = 0.0
    for tile, held in before.known.items():
        now = layouts.known[tile]
        if now is not held and isinstance(now, Fragment) and isinstance(held, Fragment):
            total += (now.slots - held.slots) * max(8, tile.dtype.bits) / 32
    return total


def _goes_through_memory(layouts: Layouts, op: Reduce) -> bool:
    """Whether threads hold rows so irregularly that they cannot add up their own parts."""
    held = layouts.known.get(op.src.buffer)
    if not isinstance(held, Fragment) or held.rank < 2:
        return False
    rows = reduced_fragment(held, op.dim)
    if rows.replication > held.thread_extent:
        return True
    slots = held.slot_table()
    of_rows = np.expand_dims(rows.slot_table(), op.dim)
    pairs = distinct(slots * rows.slots + of_rows)
    return bool(pairs.size > held.slots)  # a register is of one row here, of another there


def _transactions(loop: LoopLayout, bits: int, warp: int) -> float:
    """Return how many sectors a warp moves, if elements lie in memory as points in the loop."""
    threads = np.arange(min(warp, loop.threads)).reshape(-1, 1)
    lanes = np.arange(loop.vector).reshape(1, -1)
    flat = row_major_position(loop.coords_at(threads, 0, lanes), loop.extents)
    sectors = distinct(np.asarray(flat) * bits // SECTOR_BITS).size
    return float(sectors * loop.rounds)
