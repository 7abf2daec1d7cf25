"""What blocks remember across a barrier of the whole grid, in global memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tile_core.analysis.uniformity import is_thread_program
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.expr import AddressOf, Call, Expr, Load, Var
from tile_core.ir.node import Node, contains, nodes_of, rewrite, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Hint,
    Launch,
    Leaf,
    Let,
    Stmt,
    Store,
)
from tile_core.ops.copy import Copy
from tile_core.records import replace

_KEPT = (Scope.SHARED, Scope.FRAGMENT)
_OWN = (Scope.LOCAL, Scope.VAR)


class GridState:
    """Where one launch keeps what its blocks and threads need behind a barrier of the grid.

    What is accessed by the element lives in global memory from the start, each block, or each
    thread, in a place of its own. Tiles that operators work on are copied there in front of the
    barrier and back behind it. The body of the `launch` still holds the barriers.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.by_thread = is_thread_program(launch)
        self.homes: dict[Buffer | Var, Buffer] = {}

    def can_keep(self, item: Stmt) -> bool:
        """Whether what an `Alloc` or a `Let` makes can be kept."""
        if isinstance(item, Let):
            return str(item.var.dtype) != "handle"
        if not isinstance(item, Alloc) or item.buffer.static_shape is None:
            return False
        if item.buffer.scope in _OWN:
            return self.is_by_element(item.buffer)
        return item.buffer.scope in _KEPT

    def is_by_element(self, buffer: Buffer) -> bool:
        """Whether no operator works on the tile, and nothing views it."""
        if buffer.scope not in (*_OWN, Scope.SHARED):
            return False
        for node in walk(self.launch.body):
            if isinstance(node, AnnotateLayout) and node.buffer.storage is buffer:
                return False
            if isinstance(node, Leaf) and any(n.storage is buffer for n in nodes_of(node, Buffer)):
                return False
            if isinstance(node, (Load, Store, AddressOf)):
                other = node.buffer
                if other.storage is buffer and other is not buffer:
                    return False
        return True

    def home(self, kept: Buffer | Var) -> Buffer:
        """Return the global memory of all blocks for a tile or a value."""
        if kept not in self.homes:
            shape = () if isinstance(kept, Var) else kept.shape
            self.homes[kept] = Buffer(
                f"{kept.name}_kept",
                (*self.launch.grid, *self._threads(kept), *shape),
                kept.dtype,
                Scope.GLOBAL,
                workspace=True,
                span=kept.span,
            )
        return self.homes[kept]

    def place(self, kept: Buffer | Var) -> tuple[Expr, ...]:
        """Return the first indices of what the running block, or thread, keeps."""
        x, y, z = self.launch.thread_vars
        nx, ny, _ = self.launch.threads
        thread = (x + nx * (y + ny * z),) if self._threads(kept) else ()
        return (*self.launch.block_vars, *thread)

    def _threads(self, kept: Buffer | Var) -> tuple[int, ...]:
        own = isinstance(kept, Var) or kept.scope in _OWN
        return (math.prod(self.launch.threads),) if own and self.by_thread else ()

    # Programs ----------------------------------------------------------------------------

    def allocations(self) -> list[Stmt]:
        """Return what makes the global memory available."""
        return [Alloc(home, span=home.span) for home in self.homes.values()]

    def moved(self, items: Sequence[Stmt], tiles: Sequence[Buffer]) -> list[Stmt]:
        """Return statements that access `tiles` where they are kept."""
        homes = {tile: (self.home(tile), self.place(tile)) for tile in tiles}

        def rule(node: Node) -> Node:
            if isinstance(node, (Load, Store, AddressOf)) and node.buffer in homes:
                home, place = homes[node.buffer]
                return replace(node, buffer=home, indices=(*place, *node.indices))
            return node

        kept = [s for s in items if not (isinstance(s, Alloc) and s.buffer in homes)]
        return [rewrite(item, rule) for item in kept]

    def saved(self, kept: Buffer | Var) -> Stmt:
        """Return the statement that keeps a tile or a value."""
        home, place = self.home(kept), self.place(kept)
        if isinstance(kept, Var):
            return Store(home, place, kept, span=kept.span)
        return Copy(whole(kept), self._region(kept), span=kept.span)

    def restored(self, kept: Buffer | Var) -> Stmt:
        """Return the statement that brings it back."""
        home, place = self.home(kept), self.place(kept)
        if isinstance(kept, Var):
            return Let(kept, Load(home, place), span=kept.span)
        return Copy(self._region(kept), whole(kept), span=kept.span)

    def _region(self, tile: Buffer) -> Region:
        home, place = self.home(tile), self.place(tile)
        ones = (1,) * len(place)
        return Region(home, (*place, *((0,) * tile.rank)), (*ones, *tile.shape), span=tile.span)


def is_repeatable(stmt: Stmt) -> bool:
    """Whether a statement only says something about what follows, the same at every time."""
    if isinstance(stmt, Let):
        return not contains(stmt.value, Load, Call)
    return isinstance(stmt, (Hint, AnnotateSafeValue))
