"""Tiles in registers that several ranges of threads use, as a tile for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import cast

from tile_core.ir.buffer import Buffer
from tile_core.ir.node import Node, rewrite, substitute
from tile_core.ir.stmt import Alloc, AnnotateLayout, Kernel, Launch, OnThreads, Seq, Stmt


def own_tiles(kernel: Kernel) -> Kernel:
    """Return `kernel` with a register tile for each range of threads that uses one of its name.

    Before   alloc f;  threads 0 count 128: fill f;  threads 128 count 128: copy A, f
    After    alloc f, f';  threads 0 count 128: fill f;  threads 128 count 128: copy A, f'

    Threads hold a tile in registers, so ranges without a common thread have nothing in common
    there either. A tile that threads outside of the ranges use as well stays one. Returns the
    same object when there is nothing to do.
    """

    def rule(node: Node) -> Node:
        return _separated(node) if isinstance(node, Launch) else node

    return rewrite(kernel, rule)


def _separated(launch: Launch) -> Launch:
    users: dict[Buffer, dict[tuple[int, int] | None, None]] = {}

    def visit(node: Node, part: tuple[int, int] | None) -> None:
        if isinstance(node, (Alloc, AnnotateLayout)):
            return
        if isinstance(node, Buffer) and node.storage.scope.is_spread:
            users.setdefault(node.storage, {})[part] = None
        if isinstance(node, OnThreads) and part is None:
            part = node.first, node.count
        for child in node.children():
            visit(child, part)

    visit(launch.body, None)
    several = {tile: [*parts] for tile, parts in users.items() if _are_apart([*parts])}
    if not several:
        return launch
    own: dict[tuple[int, int], dict[Node, Node]] = {}
    copies: dict[Buffer, list[Buffer]] = {}
    for tile, (_, *others) in several.items():
        for part in others:
            assert part is not None
            made = replace(tile)
            own.setdefault(part, {})[tile] = made
            copies.setdefault(tile, []).append(made)

    def visible(node: Node) -> Iterator[Stmt]:
        """Yield a statement of a sequence, and behind an `Alloc` those of the other ranges."""
        yield cast("Stmt", outermost(node))
        if isinstance(node, Alloc):
            for tile in copies.get(node.buffer, ()):
                yield replace(node, buffer=tile)

    def outermost(node: Node) -> Node:
        """Name tiles from the outermost ranges on: those inside of them are part of them."""
        if isinstance(node, OnThreads):
            return substitute(node, own.get((node.first, node.count), {}))
        if isinstance(node, Seq):
            return replace(node, body=tuple(s for item in node.body for s in visible(item)))
        return node.map_children(outermost)

    return replace(launch, body=cast("Stmt", outermost(launch.body)))


def _are_apart(parts: list[tuple[int, int] | None]) -> bool:
    """Whether there are several ranges, and no thread belongs to two of them."""
    ranges = sorted(part for part in parts if part is not None)
    if len(ranges) < 2 or len(ranges) < len(parts):
        return False
    return all(a[0] + a[1] <= b[0] for a, b in pairwise(ranges))
