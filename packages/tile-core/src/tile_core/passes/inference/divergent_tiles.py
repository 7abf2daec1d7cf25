"""Register tiles of which every thread holds all, and that threads change apart.

What a statement outside of data-parallel loops accesses is whole in each thread. A statement that
all threads run alike changes all copies alike; one that some of them leave out, or that changes
another element in each thread, leaves copies that differ. A thread may read back what it wrote
itself; whoever reads the tile as one would find some thread's copy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from tile_core.analysis.memory_access import inlined
from tile_core.analysis.uniformity import Uniformity, is_thread_program
from tile_core.errors import LayoutConflict, Note, Span
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr, Load, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import (
    For,
    If,
    Kernel,
    Launch,
    Leaf,
    Let,
    OnThreads,
    Parallel,
    Pipelined,
    Stmt,
    Store,
    While,
)
from tile_core.ir.structural_equality import structurally_equal
from tile_core.ir.visitor import expressions_in, statements_in
from tile_core.records import dataclass


def refuse_divergent_tiles(kernel: Kernel, floating: Iterable[Buffer]) -> None:
    """Refuse tiles that threads change apart and that something reads as one.

    The `floating` tiles are those that statements of every thread access.

    Raises
    ------
    LayoutConflict
        With the lines of both.
    """
    tiles = {tile for tile in floating if tile.scope is Scope.FRAGMENT}
    if not tiles:
        return
    for launch in nodes_of(kernel, Launch):
        if is_thread_program(launch):
            survey = _Survey(tiles, Uniformity(launch))
            survey.visit(launch.body, apart=False)
            survey.judge()


@dataclass(slots=True, eq=False)
class _Survey:
    """Who changes tiles apart, and who reads them."""

    tiles: set[Buffer]
    uniform: Uniformity
    meaning: dict[Var, Expr] = field(default_factory=dict)
    stores: dict[Buffer, list[Store]] = field(default_factory=dict)
    loads: dict[Buffer, list[tuple[Load, Span | None]]] = field(default_factory=dict)
    readers: dict[Buffer, Span | None] = field(default_factory=dict)

    def visit(self, stmt: Stmt, *, apart: bool) -> None:
        """Look at a statement; threads come to it one without the other if they are `apart`."""
        match stmt:
            case Parallel():
                self._read_as_one((load.buffer for load in nodes_of(stmt, Load)), stmt)
                return
            case Leaf():
                self._read_as_one((region.buffer for region in stmt.reads()), stmt)
                return
            case OnThreads():
                return
            case Let(var=var, value=value):
                self.meaning[var] = value
            case Store(buffer=buffer, indices=indices) if buffer.storage in self.tiles:
                if apart or any(map(self.uniform.varies, indices)):
                    self.stores.setdefault(buffer.storage, []).append(stmt)
            case If() | While() | For() | Pipelined():
                apart = apart or any(map(self.uniform.varies, expressions_in(stmt)))
        for expression in expressions_in(stmt):
            for load in nodes_of(expression, Load):
                self.loads.setdefault(load.buffer.storage, []).append((load, stmt.span))
        for inner in statements_in(stmt):
            self.visit(inner, apart=apart)

    def _read_as_one(self, buffers: Iterable[Buffer], stmt: Stmt) -> None:
        for buffer in buffers:
            self.readers.setdefault(buffer.storage, stmt.span)

    def judge(self) -> None:
        """Refuse the first tile that is read otherwise than by the thread that wrote it."""
        for tile, stores in self.stores.items():
            if tile in self.readers:
                raise _divergent(stores[0], self.readers[tile])
            for load, span in self.loads.get(tile, ()):
                if not any(self._is_own(load, store) for store in stores):
                    raise _divergent(stores[0], load.span or span)

    def _is_own(self, load: Load, store: Store) -> bool:
        """Whether each thread reads, of what threads store apart, its own elements."""
        return len(load.indices) == len(store.indices) and all(
            self._is_same(mine, theirs)
            for mine, theirs in zip(load.indices, store.indices, strict=True)
            if self.uniform.varies(theirs)
        )

    def _is_same(self, left: Expr | int, right: Expr | int) -> bool:
        """Whether two indices are the same function of the thread and of loops' variables."""
        mine, theirs = inlined(left, self.meaning), inlined(right, self.meaning)
        return structurally_equal(mine, theirs) and self._names(mine) == self._names(theirs)

    def _names(self, index: Expr | int) -> set[Var]:
        if isinstance(index, int):
            return set()
        return {var for var in nodes_of(index, Var) if self.uniform.varies(var)}


def _divergent(store: Store, reader: Span | None) -> LayoutConflict:
    name = store.buffer.name
    return LayoutConflict(
        f"{name!r} is whole in each thread, and here threads change it apart, each its own copy",
        span=store.span,
        notes=(Note("it is read as one tile here", reader),),
        hint="make it a T.alloc_shared tile, which threads share; or let a T.Parallel loop, which "
        f"shares its elements out, write {name}; or use T.alloc_local for what each thread keeps "
        "for itself",
    )
