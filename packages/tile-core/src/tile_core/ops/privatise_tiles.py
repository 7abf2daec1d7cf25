"""Tiles in registers that several ranges of threads use, as a tile for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import cast

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_written
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    Kernel,
    Launch,
    Leaf,
    OnThreads,
    Seq,
    Stmt,
    Store,
)
from tile_core.ir.visitor import map_launches
from tile_core.records import replace


def privatise_tiles(
    kernel: Kernel, of_threads: Callable[[Launch], bool] = lambda launch: False
) -> Kernel:
    """Return `kernel` with a register tile for each range of threads that uses one of its name.

    Before   alloc f;  threads 0 count 128: fill f;  threads 128 count 128: copy A, f
    After    alloc f, f';  threads 0 count 128: fill f;  threads 128 count 128: copy A, f'

    Threads hold a tile in registers, so ranges without a common thread have nothing in common
    there either. A tile that threads outside of the ranges use as well stays one. Returns the
    same object when there is nothing to do.

    `of_threads` tells whether variables and arrays of threads are separated, too, in a launch that
    runs each range as one. What all threads write to one goes to those of all ranges then.
    """
    return map_launches(kernel, lambda launch: _separated(launch, of_threads(launch)))


def _separated(launch: Launch, of_threads: bool) -> Launch:
    users: dict[Buffer, dict[tuple[int, int] | None, None]] = {}

    def visit(node: Node, part: tuple[int, int] | None) -> None:
        if isinstance(node, (Alloc, AnnotateLayout)):
            return
        if isinstance(node, Buffer) and (
            node.storage.scope.is_spread or (of_threads and node.storage.scope.is_thread_private)
        ):
            users.setdefault(node.storage, {})[part] = None
        if isinstance(node, OnThreads) and part is None:
            part = node.first, node.count
        for child in node.children():
            visit(child, part)

    visit(launch.body, None)
    parts_of = {tile: _parts(launch, tile, [*parts]) for tile, parts in users.items()}
    own: dict[tuple[int, int], dict[Node, Node]] = {}
    copies: dict[Buffer, list[Buffer]] = {}
    for tile, others in parts_of.items():
        for part in others:
            made = replace(tile)
            own.setdefault(part, {})[tile] = made
            copies.setdefault(tile, []).append(made)

    if not copies:
        return launch

    def visible(node: Node) -> Iterator[Stmt]:
        """Yield a statement of a sequence, and behind an `Alloc` those of the other ranges."""
        yield cast("Stmt", outermost(node))
        if isinstance(node, Alloc):
            for tile in copies.get(node.buffer, ()):
                yield replace(node, buffer=tile)
        elif isinstance(node, (Store, Leaf)):
            for tile in storages_written(node):
                for other in copies.get(tile, ()):
                    yield substitute(node, {tile: other})

    def outermost(node: Node) -> Node:
        """Name tiles from the outermost ranges on: those inside of them are part of them."""
        if isinstance(node, OnThreads):
            return substitute(node, own.get((node.first, node.count), {}))
        if isinstance(node, Seq):
            return replace(node, body=tuple(s for item in node.body for s in visible(item)))
        return node.map_children(outermost)

    return replace(launch, body=cast("Stmt", outermost(launch.body)))


def _parts(
    launch: Launch, tile: Buffer, users: list[tuple[int, int] | None]
) -> list[tuple[int, int]]:
    """Return the ranges that need a tile of their own beside the one that is there."""
    ranges = sorted(part for part in users if part is not None)
    if not all(a[0] + a[1] <= b[0] for a, b in pairwise(ranges)):
        return []
    if None not in users:
        return ranges[1:]
    if tile.scope.is_spread:
        return []
    parts = nodes_of(launch.body, OnThreads)
    return ranges if any(tile in storages_written(part) for part in parts) else []
