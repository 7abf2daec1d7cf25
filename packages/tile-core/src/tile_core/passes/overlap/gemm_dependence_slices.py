"""What of an iteration leads to its MMAs, and what may wait until they are over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tile_core.analysis.first_access import is_overwritten
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import accesses, effects_of, storages_read
from tile_core.ir.intrinsics import Effect
from tile_core.ir.node import contains, nodes_of, walk
from tile_core.ir.stmt import Evaluate, Leaf, Let, Parallel, Seq, Stmt, Store
from tile_core.ops.gemm import Gemm
from tile_core.ops.mbarrier import BarrierArrive, BarrierWait
from tile_core.passes.overlap.gemm_loop_body import (
    GemmLoopBody,
    Late,
    conflict,
    delayed_release,
    is_release,
    registers_of,
    touched,
    turns_of,
    written,
)
from tile_core.records import dataclass, replace

Fills: TypeAlias = Mapping[Buffer, frozenset[Buffer]]
"""For each buffer of barriers the tiles that are there once one of them completes."""


@dataclass(frozen=True, slots=True)
class DependenceSlices:
    """The statements of an iteration whose MMAs go on into the next one.

    `ahead` are the MMAs, all left in flight, and what they need; the rest, `behind`, may run once
    the next iteration's `ahead` has begun. `late` are releases of what the MMAs read, `versioned`
    are fragments and shared tiles that both iterations use at the same time, and `products` is the
    number of MMAs of an iteration.
    """

    ahead: tuple[Stmt, ...]
    behind: tuple[Stmt, ...]
    late: tuple[Late, ...]
    versioned: tuple[Buffer, ...]
    products: int


def parts_of(body: GemmLoopBody, fills: Fills) -> DependenceSlices | None:
    """Return the parts of an iteration; None if its MMAs must be waited for in it.

    Before   round:  wait full;  scale S;  gemm A_s, B_s -> part;  arrive empty;  total += part * S
    After    ahead:   wait full;  gemm A_s, B_s -> part
             behind:  scale S;  total += part * S
             late:    arrive empty

    What of `ahead` is not an MMA touches no registers of an MMA that began before it in
    the iteration, nor writes tiles that it reads. All that both parts touch and one of them writes,
    and all that MMAs read and threads write, are fragments and tiles of which each iteration
    overwrites its own.
    """
    if not all(map(_may_move, body.items)):
        return None
    uses = CircularUses(body, fills)
    first = _needed(body, uses)
    placed = uses.placed(first)
    if placed is None:
        return None
    ahead, late = placed
    behind = [s for k, s in enumerate(body.items) if k not in first and k not in ahead]
    named = _with_names(behind, body, first)
    if named is None:
        return None
    return _checked(body, [ahead[k] for k in sorted(ahead)], named, late, uses.waited(ahead))


def _may_move(stmt: Stmt) -> bool:
    """Whether all that a statement does is what it reads and writes."""
    if is_release(stmt) or isinstance(stmt, BarrierWait):
        return True
    if isinstance(stmt, Evaluate) or effects_of(stmt) & ~Effect.READS:
        return False
    if contains(stmt, BarrierWait, BarrierArrive):
        return False
    return isinstance(stmt, (Leaf, Parallel, Store, Let))


def _needed(body: GemmLoopBody, uses: CircularUses) -> set[int]:
    """Return the positions of the MMAs, and of all that they depend on."""
    found: set[int] = set()
    for k in range(len(body.items) - 1, -1, -1):
        later = (body.items[n] for n in found)
        if k in body.products or any(uses.depends(s, body.items[k]) for s in later):
            found.add(k)
    return found


def _with_names(behind: Sequence[Stmt], body: GemmLoopBody, first: set[int]) -> list[Stmt] | None:
    """Return `behind` with its own copies of names it shares with what is ahead."""
    changed = set().union(*map(written, body.items))
    shared: list[Stmt] = []
    for k in sorted(first, reverse=True):
        item = body.items[k]
        if isinstance(item, Let) and any(_uses(s, item) for s in (*shared, *behind)):
            if changed & storages_read(item).keys():
                return None
            shared.insert(0, item)
    return [*shared, *behind]


def _uses(stmt: Stmt, name: Let) -> bool:
    return stmt is not name and any(n is name.var for n in walk(stmt))


def _checked(
    body: GemmLoopBody,
    ahead: list[Stmt],
    behind: list[Stmt],
    late: list[Late],
    awaited: set[Buffer],
) -> DependenceSlices | None:
    """Return the parts, if they may run beside those of the next iteration."""
    products = [body.items[k] for k in body.products]
    registers: set[Buffer] = set().union(*map(registers_of, products))
    others = [s for k, s in enumerate(body.items) if k not in body.products]
    tiles = {b for p in products for b in touched(p) if b.scope is Scope.SHARED}
    versioned = registers & set().union(*map(touched, others))
    versioned |= tiles & set().union(*map(written, others))
    if any(_reads_results(p, products) for p in products) or _meets_running(ahead):
        return None
    if not all(_is_own(body.items, v) for v in versioned):
        return None
    kept = set().union(*map(touched, products)) - versioned
    if any(b.scope is not Scope.VAR for s in others for b in written(s) & kept):
        return None
    for one in ahead:
        for other in behind:
            both = written(one) & touched(other) | touched(one) & written(other)
            if both - versioned or awaited & touched(other):
                return None
    order = tuple(sorted(versioned, key=lambda b: b.name))
    return DependenceSlices(tuple(ahead), tuple(behind), tuple(late), order, len(products))


def _reads_results(product: Stmt, products: Sequence[Stmt]) -> bool:
    """Whether an MMA has sums of one of the others, or its own, as an operand."""
    assert isinstance(product, Gemm)
    factors = {r.buffer.storage for r in (product.a, product.b)}
    return bool(factors & set().union(*map(written, products)))


def _meets_running(ahead: Sequence[Stmt]) -> bool:
    """Whether a statement meets an MMA that began before it: in registers, or by writing."""
    running: set[Buffer] = set()
    read: set[Buffer] = set()
    for stmt in ahead:
        if isinstance(stmt, Gemm) and stmt.wg_wait:
            running |= registers_of(stmt)
            read |= {b for b in touched(stmt) if b.scope is Scope.SHARED}
        elif touched(stmt) & running or written(stmt) & read:
            return True
    return False


def _is_own(items: Sequence[Stmt], tile: Buffer) -> bool:
    """Whether rounds leave each other nothing in a tile, which has one name alone."""
    names = {n for s in items for n in nodes_of(s, Buffer) if n.storage is tile}
    return names == {tile} and is_overwritten(items, tile)


class CircularUses:
    """The waits and releases of an iteration, with the tiles they are about."""

    def __init__(self, body: GemmLoopBody, fills: Fills) -> None:
        self.body = body
        self.tiles = {
            k: fills.get(s.barrier.buffer, frozenset())
            for k, s in enumerate(body.items)
            if isinstance(s, BarrierWait)
        }
        self.known = {body.items[k]: tiles for k, tiles in self.tiles.items()}

    def depends(self, later: Stmt, earlier: Stmt) -> bool:
        """Whether a statement must stay behind an earlier one."""
        if isinstance(earlier, Let) and _uses(later, earlier):
            return True
        filled = self.known.get(earlier)
        return bool(filled and filled & touched(later)) or conflict(later, earlier)

    def waited(self, positions: Mapping[int, Stmt]) -> set[Buffer]:
        """Return the tiles that waits at these positions are for."""
        return set().union(*(tiles for k, tiles in self.tiles.items() if k in positions))

    def placed(self, first: set[int]) -> tuple[dict[int, Stmt], list[Late]] | None:
        """Return what is ahead, by position, and which releases come an iteration late.

        Releases go with the last of those who read the tiles; turns go on at once.
        """
        ahead: dict[int, Stmt] = {}
        late: list[Late] = []
        for k, item in enumerate(self.body.items):
            if is_release(item):
                readers = self.readers(item)
                if not readers or (readers & first and readers - first):
                    return None
                if readers & set(self.body.products):
                    late.append(delayed_release(item))
                    ahead[k] = Seq(item.body[1:])
                elif readers <= first:
                    ahead[k] = item
            elif k in first:
                running = isinstance(item, Gemm) and k in self.body.products
                ahead[k] = replace(item, wg_wait=-1) if running else item
        return ahead, late

    def readers(self, release: Seq) -> set[int]:
        """Return the positions of those who read the tiles of a release's circular buffer."""
        turns = turns_of(release)
        waits = [k for k in self.tiles if turns_of(self.body.items[k]) & turns]
        tiles = set().union(*(self.tiles[k] for k in waits))
        return {
            k
            for k, s in enumerate(self.body.items)
            if any(a.buffer.storage in tiles for a in accesses(s))
        }
